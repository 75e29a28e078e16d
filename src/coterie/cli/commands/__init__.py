"""The commands, one module each, with the options of each as a dataclass. Light: all are loaded for help."""
