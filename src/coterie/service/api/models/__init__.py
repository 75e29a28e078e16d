"""The fields of requests and answers, from which the published schema is made."""
