"""The commands that ask a service, one module each, with their options."""
