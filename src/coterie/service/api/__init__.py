"""The REST API: FastAPI routes over the service's façade."""
