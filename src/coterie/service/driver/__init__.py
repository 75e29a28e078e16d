"""The leader: it drives workflows through their life cycle on the backends."""
