"""The driven workflows: their states, texts and deadlines, and the isolation of those that fail."""
