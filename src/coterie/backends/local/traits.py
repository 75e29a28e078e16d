"""Traits of the embedded scheduler: tasks are processes of this machine, on the nodes that Coterie's engine chooses."""

from __future__ import annotations

from coterie.backends.base.traits import Traits

TRAITS = Traits("local", title="the embedded scheduler", embedded=True, topology=True, compute_domains=True)
