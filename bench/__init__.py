"""Measurements of Coterie against Kueue's placement code, numpy, `json.loads` and an empty command line.

Run `python -m bench --help` from the repository's root. Everything that is compared is measured in the same run, so
that the ratios mean something on a slow or busy machine too.
"""
