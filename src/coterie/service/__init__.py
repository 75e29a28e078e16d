"""The service: pools, workflows and their whole life, behind a REST API."""
