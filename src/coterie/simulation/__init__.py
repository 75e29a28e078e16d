"""Replaying a trace of jobs on a cluster: rows in, events and a report out.

Nothing here reads a file, writes one or looks at a clock: time is a number from the trace, in seconds, and the same
trace on the same cluster gives the same report on every machine.
"""
