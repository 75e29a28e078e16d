"""The operator settings that affect graph deployments."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DynamoSettings:
    """The configuration of the cluster that a graph deployment is intended for.

    `strict` adds the rules that concern the runtime inside the images, which an operator enforces and a placement does
    not need; without it they are warnings.
    """

    grove: bool = True
    kai: bool = True
    default_queue: str = "dynamo"
    strict: bool = False


DEFAULTS = DynamoSettings()
