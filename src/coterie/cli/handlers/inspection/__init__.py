"""The implementations of the commands that inspect a cluster, a topology or the users of one."""
