"""The web page: its files, the session of its user, and the map that it follows."""
