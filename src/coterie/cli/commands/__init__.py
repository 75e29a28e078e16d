"""The commands, one module each, with its options as a dataclass; a module imports little until its command runs."""
