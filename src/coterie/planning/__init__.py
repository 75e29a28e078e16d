"""Planning: workloads, a pool and a cluster in, a plan out, with its notices and its report.

Values in, values out; the command line reads files and prints.
"""
