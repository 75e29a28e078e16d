"""The databases below the store: SQLite and Postgres behind one interface, one writer at a time."""
