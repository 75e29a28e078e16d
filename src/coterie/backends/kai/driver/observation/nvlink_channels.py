"""The NVLink channels of a cluster, by a watch of all claims: those that are held although no pod uses them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack

import msgspec

from coterie.backends.kai.driver.objects import AnyObject, ObjectMeta
from coterie.errors import CoterieError
from coterie.kube.api import Api
from coterie.kube.cache import CacheChange, ChangeType
from coterie.kube.kinds import RESOURCE_CLAIM
from coterie.kube.reads import ObjectQuery, list_served
from coterie.kube.watch_thread import WatchThread
from coterie.sources.claims import ClaimStatus
from coterie.topology.channels import DRIVER

# How long a claim may be without a pod before anybody is told: both come and go one after the other.
UNUSED_S = 60.0
_FIRST_S = 20.0


class ChannelClaim(msgspec.Struct, gc=False):
    """A claim of any namespace."""

    metadata: ObjectMeta
    status: ClaimStatus = msgspec.field(default_factory=ClaimStatus)


class NvlinkChannels:
    """The claims of all namespaces; a cluster without the kind has none."""

    def __init__(self, api: Api, clock: Callable[[], float] = time.monotonic) -> None:
        self._api, self._clock = api, clock
        self._lock = threading.Lock()
        self._stack = ExitStack()
        self._watch: WatchThread[ChannelClaim] | None = None
        # By claim: since when no pod uses it, and the words about each of its channels.
        self._unused: dict[tuple[str, str], tuple[float, list[str]]] = {}

    def open(self) -> None:
        """Begin to watch, where the cluster has the kind and that has not succeeded yet."""
        query = ObjectQuery(RESOURCE_CLAIM)
        if self._watch is not None and not self._watch.running:
            # It was refused, for instance by a role that may list claims and not watch them.
            self._stack.close()
            self._watch = None
        if self._watch is None:
            with self._lock:
                self._unused.clear()
        if self._watch is None and list_served(self._api, query, AnyObject) is not None:
            with ExitStack() as stack:
                watch = WatchThread(self._api, query, ChannelClaim, on_change=self.changed)
                stack.enter_context(watch)
                watch.wait_known(_FIRST_S)
                self._stack, self._watch = stack.pop_all(), watch

    def close(self) -> None:
        """Stop the watch."""
        self._stack.close()

    @property
    def error(self) -> CoterieError | None:
        """The failure that currently keeps the watch from being up to date, if any."""
        return self._watch.error if self._watch is not None else None

    def left_behind(self) -> list[str]:
        """Return the channels that no pod has used for a while, each with its node and its claim."""
        due = self._clock() - UNUSED_S
        with self._lock:
            return sorted(said for since, words in self._unused.values() if since <= due for said in words)

    def changed(self, change: CacheChange[ChannelClaim]) -> None:
        """Note a change of a claim."""
        claim = change.entry.value
        name = (claim.metadata.namespace, claim.metadata.name)
        words = unused_channels(claim) if change.did is not ChangeType.DELETED else []
        with self._lock:
            if words:
                since, _ = self._unused.get(name, (self._clock(), words))
                self._unused[name] = (since, words)
            else:
                self._unused.pop(name, None)


def unused_channels(claim: ChannelClaim) -> list[str]:
    """Return the channels that are allocated to a claim which no pod uses, as words."""
    if claim.status.reserved_for:
        return []
    return [
        f"the NVLink channel of node {result.pool} is held by ResourceClaim {claim.metadata.namespace}/"
        f"{claim.metadata.name}, which no pod uses"
        for result in claim.status.results
        if result.driver == DRIVER
    ]
