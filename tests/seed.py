"""The seed of a test run: a new one in every run, unless COTERIE_SEED repeats an earlier one."""

from __future__ import annotations

import os
import secrets

# Workers that run tests in parallel are started with the environment of the first process, and so with its seed.
SEED = int(os.environ.setdefault("COTERIE_SEED", str(secrets.randbelow(2**32))))
