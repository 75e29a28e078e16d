"""PodCliqueSets for KAI directly: the objects that Grove's operator would create, without the operator.

Two properties of a gang have no field in KAI. They are expressed as follows.

`needed` and optional tasks. All pods of a gang are in one PodGroup. Each clique is a separate subgroup where some of
its pods are optional, and `minMember` counts the needed ones. KAI starts that many together, considering the
needed ones first, and the others one by one when there is capacity, under the same constraints.

`follows`. A follower is a separate PodGroup, and KAI has no relation between two PodGroups.

- Where follower and leader share a required group, such as the set's own constraint, the follower must go where the
  leader runs. That is known only when it runs: until a snapshot shows it, the follower is held back, with a warning.
  Then the follower's pods are bound to that domain by node affinity, with the labels of all levels from the
  coarsest to the shared one: the value of a rack alone may be there in two zones.
- A shared preferred group cannot be bound. The follower prefers a domain for itself, which may be another, with a
  warning.
- A follower that shares nothing is a gang like any other. The manifests do not keep KAI from starting it first,
  and a warning says so.
"""
