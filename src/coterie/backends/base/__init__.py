"""The seam between Coterie and schedulers: traits to ask about, a driver to act through, a registry to find both.

Nothing here knows a scheduler. The configuration stands above this package, and the backends above the configuration.
"""
