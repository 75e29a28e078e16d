"""The queue: order, quota, placement cycles and positions of waiting gangs."""
