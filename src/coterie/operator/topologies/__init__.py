"""ClusterTopologies and ClusterTopologyBindings, and the topology resources of schedulers that belong to them.

replacement  the next step towards the resource that a topology asks for (pure)
reconcile    the status and the event of a topology (pure)
reconciler   reads, carries out steps, writes statuses
"""
