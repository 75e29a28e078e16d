"""The real nodes of one lab."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

from lab.api import Object
from lab.errors import LabError
from lab.realnodes import leftovers, network
from lab.realnodes.image import write_images
from lab.realnodes.node import RealNode, Surroundings
from lab.realnodes.requirements import program


class RealNodes(Mapping[str, RealNode]):
    """Real nodes by name, at most `most` of them."""

    def __init__(self, lab: Surroundings, most: int, take_port: Callable[[], int]) -> None:
        if not 0 < most <= network.MOST_NODES:
            raise LabError(f"a lab cannot have {most} real nodes", f"Ask for 1 to {network.MOST_NODES}.")
        self._lab, self._most, self._take_port = lab, most, take_port
        self._nodes: dict[str, RealNode] = {}
        self._count = 0
        self._guard: subprocess.Popen[bytes] | None = leftovers.guard(lab.folder) if lab.tied else None
        write_images(program("busybox"), lab.images)

    def __getitem__(self, name: str) -> RealNode:
        return self._nodes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    @property
    def left(self) -> int:
        """The number of nodes that may still be added."""
        return self._most - len(self._nodes)

    def add(self, wanted: Sequence[Object]) -> None:
        """Start a node for each object, all at the same time, and return when they are ready."""
        new = []
        for each in wanted:
            node = RealNode(self._lab, each, self._count, self._take_port())
            self._count += 1
            self._nodes[node.name] = node
            new.append(node)
        for node in new:
            node.begin()
        for node in new:
            node.join()
        for node in new:
            node.settle()

    def clear(self) -> None:
        """Remove all nodes: their processes and what they kept, not their objects."""
        while self._nodes:
            self._nodes.popitem()[1].remove()

    def close(self) -> None:
        """Remove all that the nodes have left on this machine."""
        try:
            self.clear()
        finally:
            leftovers.remove(self._lab.folder)

    def dismiss_guard(self) -> None:
        """End the guard once there is nothing left that it would have to remove."""
        guard, self._guard = self._guard, None
        if guard is not None:
            with suppress(BrokenPipeError):
                guard.communicate(b"done")
