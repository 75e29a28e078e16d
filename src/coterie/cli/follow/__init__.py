"""The display of work in progress: redrawn tables, log lines, prompts on Ctrl-C."""
