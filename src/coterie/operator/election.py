"""Leadership by a Lease.

A candidate takes a lease that is free, or that it has seen unchanged for its whole duration by the candidate's own
clock, so that clocks of machines need not agree. A leader that could not renew in time stops writing before anybody
else can take the lease.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import structlog

from coterie.errors import CoterieError
from coterie.kube.api import Api
from coterie.kube.errors import ObjectConflict
from coterie.kube.kinds import LEASE
from coterie.kube.reads import find
from coterie.kube.write import create, replace

Object = dict[str, Any]

_log = structlog.get_logger("coterie.operator")


@dataclass(frozen=True, slots=True)
class LeaseTiming:
    """The times of an election: others may take the lease after `duration_s`, a leader writes for `deadline_s`."""

    duration_s: float = 8.0
    deadline_s: float = 5.0
    renew_s: float = 1.5

    @property
    def write_s(self) -> float:
        """The longest that a write may take, so that it ends before another candidate can lead."""
        return self.duration_s - self.deadline_s


@dataclass(frozen=True, slots=True)
class SeenLease:
    """A lease as last read, and since when it has been unchanged by the reader's own clock."""

    spec: Mapping[str, Any]
    since: float


def seen(before: SeenLease | None, spec: Mapping[str, Any], now: float) -> SeenLease:
    """Return the lease as seen now; its time starts anew when anything in it changed."""
    return before if before is not None and before.spec == spec else SeenLease(dict(spec), now)


def takeable(lease: SeenLease, me: str, now: float, timing: LeaseTiming) -> bool:
    """Return whether a candidate may take a lease: it is its own, free, or was not renewed for its duration."""
    holder = lease.spec.get("holderIdentity")
    if not holder or holder == me:
        return True
    duration = lease.spec.get("leaseDurationSeconds")
    limit = float(duration) if isinstance(duration, int | float) else timing.duration_s
    return now - lease.since >= limit


def held(spec: Mapping[str, Any], me: str, at: datetime, timing: LeaseTiming) -> dict[str, Any]:
    """Return the lease with its holder renewed, or changed to another one."""
    moment = at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    kept = spec.get("holderIdentity") == me
    return {
        **spec,
        "holderIdentity": me,
        "leaseDurationSeconds": max(1, round(timing.duration_s)),
        "renewTime": moment,
        "acquireTime": spec.get("acquireTime") if kept and spec.get("acquireTime") else moment,
        "leaseTransitions": int(spec.get("leaseTransitions") or 0) + (not kept),
    }


class Election:
    """One candidate in a thread of its own; `on_change` is called when it begins to lead and when it no longer does."""

    def __init__(
        self,
        api: Api,
        me: str,
        name: str,
        namespace: str,
        on_change: Callable[[bool], None],
        *,
        timing: LeaseTiming | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api, self._me, self._name, self._namespace = api, me, name, namespace
        self._on_change = on_change
        self._timing = timing or LeaseTiming()
        self._clock = clock
        self._seen: SeenLease | None = None
        self._renewed = -float("inf")
        self._leads = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="election", daemon=True)

    @property
    def leads(self) -> bool:
        """Whether writes are allowed now: the lease was renewed within the deadline."""
        return self._clock() - self._renewed < self._timing.deadline_s

    def start(self) -> None:
        """Become a candidate."""
        self._thread.start()

    def stop(self) -> None:
        """Withdraw, and release a held lease so that another candidate need not wait."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(10.0)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._attempt()
            except CoterieError as error:
                _log.warning("lease not renewed", error=str(error))
            if self._leads and not self.leads:
                self._set(leads=False)
            self._stop.wait(self._timing.renew_s if self._leads else self._timing.renew_s / 2)
        if self._leads:
            self._set(leads=False)
            self._release()

    def _attempt(self) -> None:
        begun = self._clock()
        found = find(self._api, LEASE, self._name, Object, self._namespace)
        if found is None:
            spec = held({}, self._me, datetime.now(UTC), self._timing)
            metadata = {"name": self._name, "namespace": self._namespace}
            lease: Object = {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": metadata,
                "spec": spec,
            }
            self._write(lambda: create(self._api, lease), begun)
            return
        spec = found.get("spec") or {}
        self._seen = seen(self._seen, spec, self._clock())
        if not takeable(self._seen, self._me, self._clock(), self._timing):
            if self._leads:
                self._renewed = -float("inf")
            return
        found["spec"] = held(spec, self._me, datetime.now(UTC), self._timing)
        self._write(lambda: replace(self._api, found), begun)

    def _write(self, write: Callable[[], object], begun: float) -> None:
        try:
            write()
        except ObjectConflict:
            return
        # Counted from before the request: the lease may be older than its answer.
        self._renewed = begun
        if not self._leads:
            self._set(leads=True)

    def _set(self, *, leads: bool) -> None:
        self._leads = leads
        _log.info("leadership gained" if leads else "leadership lost", identity=self._me, lease=self._name)
        self._on_change(leads)

    def _release(self) -> None:
        self._renewed = -float("inf")
        try:
            found = find(self._api, LEASE, self._name, Object, self._namespace)
            if found is not None and (found.get("spec") or {}).get("holderIdentity") == self._me:
                found["spec"] = {key: value for key, value in found["spec"].items() if key != "holderIdentity"}
                replace(self._api, found)
        except CoterieError as error:
            _log.warning("lease not released", error=str(error))
