"""Workflow templates, rendered in a separate process under limits."""
