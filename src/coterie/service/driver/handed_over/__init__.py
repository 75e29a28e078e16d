"""Gangs that wait in the queue of their own scheduler, and the engine's answers about them."""
