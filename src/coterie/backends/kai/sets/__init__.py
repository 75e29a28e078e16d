"""PodCliqueSets for KAI directly: what Grove's operator would create, written down without one.

Two things that a gang can say have no field of their own in KAI. This is what becomes of them.

`needed` and wanted tasks. All pods of a gang are of one PodGroup. Each clique is a subgroup of its own where some of
its pods are only wanted, and `minMember` counts those that are needed. KAI starts that many together, looking at the
needed ones first, and the others one by one when there is room, under the same constraints.

`follows`. A follower is a PodGroup of its own, and KAI knows nothing between two PodGroups.

- Where follower and leader share a required group, such as the set's own constraint, the follower must go where the
  leader runs. That is known only when it runs: until a cluster shows it, the follower is held back, with a warning.
  When it is seen, the follower's pods are bound to that domain by node affinity, with the labels of all levels from the
  coarsest to the shared one: the value of a rack alone may be there in two zones.
- A shared preferred group cannot be bound. The follower prefers a domain for itself, which may be another, with a
  warning.
- A follower that shares nothing is a gang like any other. Nothing in the manifests keeps KAI from starting it first,
  and a warning says so.
"""
