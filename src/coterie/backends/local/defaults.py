"""What holds for a task unless somebody says otherwise."""

DEFAULT_LOG = 8 << 20
DEFAULT_GRACE_S = 30.0
# A watcher takes a megabyte or so. This bounds what a mistake can do, rather than what work may.
DEFAULT_PROCESSES = 256
