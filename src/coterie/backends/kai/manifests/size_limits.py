"""The size limits of objects."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from coterie.backends.shared.constraint_annotation import ANNOTATION
from coterie.backends.shared.manifest_text import Manifest
from coterie.document.located import Path
from coterie.errors import Fault, Notice

# All annotations of an object together. `kubectl apply` keeps a copy of the object in one, unless it is server-side.
MOST_ANNOTATED = 256 << 10


def limit_faults(manifests: Sequence[Manifest], owners: Mapping[str, tuple[str, Path]]) -> Iterator[Fault]:
    """Yield the groups whose constraint tree is too large for an annotation.

    `owners` has the name of each PodGroup's group, and its path in the file.
    """
    for manifest in manifests:
        if manifest["kind"] == "PodGroup":
            size = len(manifest["metadata"]["annotations"][ANNOTATION])
            if size > MOST_ANNOTATED:
                name, path = owners[manifest["metadata"]["name"]]
                message = f'group "{name}" is too large: the record of its constraints has {size:,} bytes'
                hint = f"At most {MOST_ANNOTATED:,} are allowed; shorter task names help, or several groups."
                yield Fault(message, path=path, hint=hint)


def limit_notices(manifests: Sequence[Manifest]) -> Iterator[Notice]:
    """Yield a warning when a client-side `kubectl apply` would refuse an object for its size."""
    large = [found["metadata"]["name"] for found in manifests if len(json.dumps(found)) > MOST_ANNOTATED]
    if large:
        message = f"{large[0]} is too large for a plain kubectl apply; use kubectl apply --server-side"
        yield Notice("ServerSideApply", message)
