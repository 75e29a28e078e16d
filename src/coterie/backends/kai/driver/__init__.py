"""Workflows on a cluster with KAI: their objects created, watched and removed.

driver               the `Driver` of a backend
pools                queues, topologies and priority classes, in step with the pools
external_topologies  the KAI Topologies of pools that name a ClusterTopology
members              the number of pods that a PodGroup waits for (pure)
creation             the objects of a group, in the order in which they depend on each other
pod_report           the report of a pod about its task (pure)
refusal              KAI's reason why a gang waits (pure)
followed_pods        the pods of driven tasks, and what was already reported about them
own_objects          writes that never touch an object of somebody else
removal              the end of a group's objects, each kind gone before the next
orphans              objects that no workflow has any more (pure)
watches              the pods, PodGroups and nodes of a backend, kept up to date
objects              the fields of objects that the driver reads
logs                 the logs of tasks, from the cluster or as kept after their pods
"""
