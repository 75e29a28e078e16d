"""Advice beside the answer of a plan: notices, and the remedies of a gang over its pool's limit."""
