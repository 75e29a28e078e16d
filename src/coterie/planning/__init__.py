"""From workloads, a pool and a cluster to a plan: which gangs meet, what each sees, and how it is reported.

Values in, values out; reading files and printing are the command line's.
"""
