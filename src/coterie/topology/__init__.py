"""The physical cluster: topology levels, nodes as arrays, and the domains that node labels form.

Purely computational: values in, values out; no module here reads a file, a clock or an API.
"""
