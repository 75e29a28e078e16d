"""KAI: a gang becomes a PodGroup whose subgroups mirror its constraint tree, and pods that name their subgroup."""
