"""The leader, which drives workflows through their life cycle on the backends."""
