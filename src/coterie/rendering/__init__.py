"""Drawing: values in, text or SVG out. Nothing here asks what a terminal can do; callers say so."""
