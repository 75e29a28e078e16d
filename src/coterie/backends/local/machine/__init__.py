"""This machine: its processes, accounts and limits."""
