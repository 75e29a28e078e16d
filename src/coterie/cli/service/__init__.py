"""The command line of the service: clients of its API, the service itself, and one that lives for a single run."""
