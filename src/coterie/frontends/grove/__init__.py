"""Grove's objects: the topologies that an admin declares, and the sets of pods that are placed by them."""
