"""Attacks on a service, with the delay that another user notices."""
