"""Coterie keeps the tasks of a GPU workload where their interconnect is.

>>> import coterie
>>> found = coterie.plan(coterie.read_workflow("train.yaml"), coterie.read_cluster("snapshot.json"))  # doctest: +SKIP

The public API is `coterie.library`, loaded on first use, so that the command line starts quickly.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coterie.library import *  # noqa: F403 - the list is kept in one place, and tested


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the library offers under that name
    if name == "__all__" or not name.startswith("_"):
        library = import_module("coterie.library")
        if name == "__all__":
            return library.__all__
        if name in library.__all__:
            return getattr(library, name)
    raise AttributeError(f"module 'coterie' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(import_module("coterie.library").__all__)
