"""The interface between Coterie and schedulers: traits to query, a driver to act through, a registry to find both.

Nothing here depends on a particular scheduler. The configuration is above this package, and the backends above the
configuration.
"""
