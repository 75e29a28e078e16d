"""The embedded backend: tasks run as processes of this machine, each supervised by its own small process."""
