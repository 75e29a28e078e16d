"""The embedded back end: tasks run as processes of this machine, each watched by a small process of its own."""
