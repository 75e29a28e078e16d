"""The operator: controllers that keep the objects of a cluster in sync with its ClusterTopologies.

    work_queue   keys that wait for a reconciliation: each once, with backoff
    watches      one watch per kind, shared by all controllers, that outlives a missing kind
    election     leadership by a Lease: a pure decision, and the thread that carries it out
    writer       writes to the cluster, refused once leadership is in doubt
    status       conditions with transition times, and events of their changes (pure)
    controller   the loop of one controller: key, reconciliation, retry
    topologies   ClusterTopologies and the topology resources of schedulers
    workloads    PodCliqueSets and graph deployments whose levels vanish
    catalog      the levels of all topologies by name, read once per change
    ownership    the kinds that no other operator of the cluster judges
    webhook      admission by the rules of `coterie validate`
    crds         the definitions of ClusterTopology and ClusterTopologyBinding
    metrics      counters and gauges for Prometheus
    endpoints    health, readiness and metrics over HTTP
    operator     the assembly of all of it, from start to stop

A reconciliation is a pure function from what was read to what should be written. Everything else here reads, writes and
retries.
"""
