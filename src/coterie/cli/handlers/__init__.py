"""The implementations of the commands, a module for each, with heavy imports: loaded when a command is called."""
