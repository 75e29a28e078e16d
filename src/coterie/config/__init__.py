"""The configuration: backends and pools, as coterie.yaml and the API describe them."""
