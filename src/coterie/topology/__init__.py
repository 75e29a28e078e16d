"""The physical side: levels, the nodes of a cluster as arrays, and the domains they form.

Purely computational: values in, values out; nothing here reads a file, a clock or an API.
"""
