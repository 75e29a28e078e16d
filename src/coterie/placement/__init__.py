"""The engine: a gang and a cluster in, a placement or a proved refusal out.

Pure computation on numpy arrays. `capacity` holds what is free, `problem` compiles a gang to integers, `search`
chooses domains, `packing` puts shapes on nodes, `engine` asks them in order of the objective, `explain` says why not.
The reasoning behind it is written down in docs/design/0001-placement.md.
"""
