"""The client of the service's API."""
