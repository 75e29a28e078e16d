"""Inputs of commands: files, clusters, pools, shared options and shell completion."""
