"""The intermediate representation: a gang is a tree that states which tasks share which domain, and nothing else.

Every front end compiles to it; the engine and every backend read only this form.
"""
