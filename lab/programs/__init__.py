"""The programs of the lab: their sources, and their build."""
