"""PodCliqueSets and graph deployments whose topologies or levels vanish and come back.

reconcile   the status and the event of an object (pure)
references  the objects that refer to each topology, and the set behind each graph
reconciler  reads, and writes statuses that change
"""
