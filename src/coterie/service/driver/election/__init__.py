"""The lease of the leader, and the folder and store that belong to one service."""
