"""The work behind the commands, a module for each, with heavy imports: loaded when its command is called."""
