"""The optional topology part of a scheduler: its own resource with the levels of a topology.

A scheduler without it places no work by levels that an administrator declares in a cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class WorkLevel:
    """A level that a part of an object names by its node label; `field` is the place of the constraint."""

    field: str
    topology: str
    label: str
    required: bool


class TopologyResource(Protocol):
    """The resource of one scheduler: its kind, its content, and the work that refers to it.

    All functions are pure; a controller reads and writes the objects.
    """

    @property
    def scheduler(self) -> str:
        """The name of the scheduler in pods and in references to the resource."""

    @property
    def api_version(self) -> str:
        """The group and version of the resource."""

    @property
    def kind(self) -> str:
        """The kind of the resource."""

    @property
    def work(self) -> tuple[str, str]:
        """The apiVersion and kind of the objects that refer to the resource."""

    def resource_name(self, topology: str) -> str:
        """Return the name of the resource that belongs to a topology."""

    def manifest(self, name: str, topology: str, labels: Sequence[str]) -> dict[str, Any]:
        """Return the resource of a topology with node labels, coarsest first."""

    def labels(self, found: Object) -> tuple[str, ...]:
        """Return the node labels of a resource; raise ValueError for an invalid one."""

    def refusal(self, labels: Sequence[str]) -> str:
        """Return why the scheduler rejects a resource with these labels, or an empty string."""

    def work_of(self, pod: Object) -> str:
        """Return the name of the object that a pod belongs to and that refers to the resource; empty if none does."""

    def references(self, work: Object) -> Mapping[str, str]:
        """Return the names of resources that an object refers to, by JSON pointer."""

    def levels(self, work: Object) -> Sequence[WorkLevel]:
        """Return the levels that an object names, each with its place."""
