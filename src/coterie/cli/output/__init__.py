"""Output of commands: formats, tables, errors with source frames."""
