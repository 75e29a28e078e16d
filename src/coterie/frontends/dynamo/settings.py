"""The operator settings that affect graph deployments."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DynamoSettings:
    """The configuration of the cluster that a graph deployment is intended for.

    `strict` adds the rules that concern the runtime inside the images, which an operator enforces and a placement does
    not need; without it they are warnings. `termination_delay` is left to Grove where it is not set.
    """

    grove: bool = True
    kai: bool = True
    default_queue: str = "dynamo"
    termination_delay: str | None = None
    strict: bool = False


DEFAULTS = DynamoSettings()
