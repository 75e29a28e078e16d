"""What is remarked on about workflows whose tasks run here, in words that others look for."""

NO_IMAGES = "image is ignored: commands run on this machine, not in containers"
