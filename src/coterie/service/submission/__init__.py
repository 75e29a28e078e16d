"""Submission: checks, compilation and previews of workflows before they are stored."""
