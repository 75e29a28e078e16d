"""The nodes of a pool with their tasks, as the web page draws them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from coterie.service.api.models.base import ResponseBody
from coterie.service.api.models.pools import MapLevel


class NodeHolder(ResponseBody):
    """A task that holds GPUs of a node."""

    owner: str = Field(description="The workflow; for other pods, their owner.")
    group: str = Field(description="Empty for pods that are not Coterie's.")
    task: str
    gpus: int


class NodeNow(ResponseBody):
    """The part of a node that changes."""

    gpus: int
    status: Literal["ready", "cordoned", "not_ready"]
    channel: bool = Field(description="Its NVLink channel is taken.")
    held: list[NodeHolder]


class ListedNode(NodeNow):
    """A node."""

    name: str
    short: str = Field(description="A short form of the name, distinct among the nodes.")
    domain: int = Field(description="The index of the finest domain that it is in, -1 for none.")


class ListedDomain(ResponseBody):
    """A domain; the ones above it come before it."""

    level: int = Field(description="The index of its level.")
    parent: int = Field(description="The index of the domain around it, -1 for none.")
    value: str
    short: str


class NodeMap(ResponseBody):
    """The nodes of a pool, in the order of their domains."""

    version: int
    pool: str
    levels: list[MapLevel] = Field(description="The coarsest first.")
    domains: list[ListedDomain]
    nodes: list[ListedNode]
