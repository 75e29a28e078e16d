"""Workflows on a cluster with KAI: their objects created, watched and removed.

driver               the `Driver` of a backend
pools                queues, topologies and priority classes, kept in sync with the pools
external_topologies  the KAI Topologies of pools that name a ClusterTopology
members              the number of pods that a PodGroup waits for (pure)
creation             the objects of a group, in the order in which they depend on each other
bound_domains        the domains of bound pods, written for their containers
own_objects          writes that never touch an object of somebody else
removal              the end of a group's objects, each kind gone before the next
workspaces           the folders of workflows on workspaces, recorded and removed
orphans              objects that no workflow has any more (pure)
objects              the fields of objects that the driver reads
logs                 the logs of tasks, from the cluster or as kept after their pods
observation          watches, and what they report about pods, gangs and ComputeDomains
"""
