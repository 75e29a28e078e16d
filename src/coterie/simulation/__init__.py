"""The replay of a trace of jobs on a cluster: rows in, events and a report out.

No module here reads or writes a file or reads a clock: time is a number from the trace, in seconds, and the same trace
on the same cluster gives the same report on every machine.
"""
