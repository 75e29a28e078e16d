"""The implementations of the commands that use a service, over HTTP."""
