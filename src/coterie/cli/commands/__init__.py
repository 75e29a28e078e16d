"""The commands, one module each, with its options as a dataclass; all are loaded for help, so they import little."""
