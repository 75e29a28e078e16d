"""Traits of the default scheduler of Kubernetes, which places pods one by one."""

from __future__ import annotations

from coterie.backends.base.traits import Traits

TRAITS = Traits("default", title="the default scheduler", chooses_nodes=True)
