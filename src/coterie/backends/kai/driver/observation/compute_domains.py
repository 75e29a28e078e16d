"""The ComputeDomains of a backend, kept up to date by a watch: those that are not ready, and what they lack."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack

import msgspec

from coterie.backends.kai.driver.objects import AnyObject, ObjectMeta
from coterie.backends.kai.driver.observation.nvlink_channels import NvlinkChannels
from coterie.backends.kai.manifests.metadata import STORE
from coterie.errors import CoterieError
from coterie.kube.api import Api
from coterie.kube.cache import CacheChange, ChangeType
from coterie.kube.kinds import COMPUTE_DOMAIN
from coterie.kube.reads import ObjectQuery, list_served
from coterie.kube.watch_thread import WatchThread

# How long a domain may take to become ready before anybody is told.
PATIENCE_S = 10.0
_FIRST_S = 20.0
_READY = "Ready"


class DomainNode(msgspec.Struct, gc=False):
    """One node of a ComputeDomain, and whether its daemon is ready."""

    name: str = ""
    clique: str = msgspec.field(name="cliqueID", default="")
    status: str = ""


class ComputeDomainStatus(msgspec.Struct, gc=False):
    """The status of a ComputeDomain."""

    status: str = ""
    nodes: list[DomainNode] | None = None


class GangComputeDomain(msgspec.Struct, gc=False):
    """The ComputeDomain of a group."""

    metadata: ObjectMeta
    status: ComputeDomainStatus = msgspec.field(default_factory=ComputeDomainStatus)


class ComputeDomains:
    """The ComputeDomains of one store in one namespace; a cluster without the kind has none."""

    def __init__(
        self,
        api: Api,
        namespace: str,
        store: str,
        wake: threading.Event,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api, self._wake, self._clock = api, wake, clock
        self._query = ObjectQuery(COMPUTE_DOMAIN, namespace, f"{STORE}={store}")
        self._lock = threading.Lock()
        self._stack = ExitStack()
        self._watch: WatchThread[GangComputeDomain] | None = None
        self._found: dict[str, tuple[float, GangComputeDomain]] = {}
        self._channels = NvlinkChannels(api, clock)
        self._failure = ""
        self._deleted = False

    @property
    def problems(self) -> list[str]:
        """The failure of the last `check`, and the channels left behind."""
        return [*([self._failure] if self._failure else []), *self._channels.left_behind()]

    def check(self) -> None:
        """Begin to watch domains and channels, if that has not succeeded yet; failures are `problems`.

        Gangs do without both: they only say why one waits.
        """
        try:
            self._open()
            self._channels.open()
        except CoterieError as error:
            self._failure = f"ComputeDomains and NVLink channels cannot be followed: {error}"
        else:
            self._failure = ""

    def _open(self) -> None:
        """Begin to watch, where the cluster has the kind."""
        if self._watch is None and list_served(self._api, self._query, AnyObject) is not None:
            with ExitStack() as stack:
                watch = WatchThread(self._api, self._query, GangComputeDomain, on_change=self._changed)
                stack.enter_context(watch)
                watch.wait_known(_FIRST_S)
                self._stack, self._watch = stack.pop_all(), watch

    def close(self) -> None:
        """Stop the watches."""
        self._channels.close()
        self._stack.close()

    @property
    def error(self) -> CoterieError | None:
        """The failure that currently keeps a watch from being up to date, if any."""
        return (self._watch.error if self._watch is not None else None) or self._channels.error

    def unready(self) -> dict[str, tuple[ObjectMeta, str]]:
        """Return the domains that should be ready by now, by name, and what they lack."""
        with self._lock:
            found = list(self._found.items())
        due = self._clock() - PATIENCE_S
        return {
            name: (domain.metadata, shortage(domain))
            for name, (since, domain) in found
            if since <= due and domain.status.status != _READY and domain.metadata.deletion_timestamp is None
        }

    def take_deleted(self) -> bool:
        """Return whether a domain has gone since the last call."""
        with self._lock:
            found, self._deleted = self._deleted, False
            return found

    def _changed(self, change: CacheChange[GangComputeDomain]) -> None:
        name, domain = change.entry.meta.name, change.entry.value
        with self._lock:
            if change.did is ChangeType.DELETED:
                self._found.pop(name, None)
                self._deleted = True
            else:
                since, known = self._found.get(name, (self._clock(), None))
                # A domain that was ready and is not any more has its time to recover.
                lost = known is not None and known.status.status == _READY != domain.status.status
                self._found[name] = (self._clock() if lost else since, domain)
        self._wake.set()


def shortage(domain: GangComputeDomain) -> str:
    """Return what keeps a ComputeDomain from being ready, clique by clique."""
    name, nodes = domain.metadata.name, domain.status.nodes or ()
    if not domain.status.status:
        return f"NVIDIA's controller has not answered for ComputeDomain {name}; without it no claim can be made"
    cliques: dict[str, list[DomainNode]] = {}
    for node in nodes:
        cliques.setdefault(node.clique or "without a clique", []).append(node)
    parts = []
    for clique, members in sorted(cliques.items()):
        late = [node.name for node in members if node.status != _READY]
        missing = f" (not {', '.join(late)})" if late else ""
        parts.append(f"{clique}: {len(members) - len(late)} of {len(members)} nodes are ready{missing}")
    return f"ComputeDomain {name} is {domain.status.status}" + (f": {'; '.join(parts)}" if parts else "")
