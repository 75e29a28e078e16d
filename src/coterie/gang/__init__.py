"""The intermediate form: a gang is a tree that says which tasks share which domain, and nothing else.

Every front end lowers to it; the engine and every back end read only it.
"""
