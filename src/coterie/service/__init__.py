"""The service: pools, workflows and their whole life cycle, behind a REST API."""
