"""`python -m lab`."""

from __future__ import annotations

from lab.cli import main

main()
