"""The packing of pods onto the nodes of the domains that a search chose."""
