"""Measurements of Coterie against Kueue's placement code, numpy, `json.loads` and an empty command line.

Run `python -m bench --help` from the repository's root. Compared values are measured in the same run, so that their
ratios are meaningful on a slow or busy machine too.
"""
