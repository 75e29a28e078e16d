"""The migrations of the tables; `python -m coterie.store.migrations "what it does"` writes a new one."""
