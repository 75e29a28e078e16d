"""The texts of notices about workflows whose tasks run here, which other modules compare."""

NO_IMAGES = "image is ignored: commands run on this machine, not in containers"
