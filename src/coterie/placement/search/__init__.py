"""The search for domains: a depth-first search over the constraint tree, with its bounds, memory and symmetries."""
