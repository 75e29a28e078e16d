"""The engine: a gang and a cluster in, a placement or a proved refusal out.

Pure computation on numpy arrays. `capacity` holds the free capacity, `problem` compiles a gang to integers, `search`
chooses domains, `packing` assigns shapes to nodes, `engine` calls them in the order of the objective, `explain` finds
the reason of a refusal. The reasoning is documented in docs/design/0001-placement.md.
"""
