"""How the tables came to be, step by step. A new step: `python -m coterie.store.migrations "what it does"`."""
