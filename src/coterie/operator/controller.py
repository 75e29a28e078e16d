"""The loop of one controller: a key is taken, reconciled, and retried where that fails."""

from __future__ import annotations

import threading
import time
from typing import Protocol

import structlog

from coterie.errors import CoterieError
from coterie.kube.errors import ObjectConflict
from coterie.operator.metrics import OperatorMetrics
from coterie.operator.work_queue import WorkQueue
from coterie.operator.writer import NotLeading

# Kind, namespace and name.
ObjectKey = tuple[str, str, str]

_log = structlog.get_logger("coterie.operator")


class Reconciler(Protocol):
    """A reconciliation of one object; the delay after which it wants another pass, or None."""

    def __call__(self, key: ObjectKey) -> float | None:
        """Bring the object of a key into agreement with what was read."""


class Controller:
    """A queue and its workers, which run while this replica leads."""

    def __init__(self, name: str, reconcile: Reconciler, metrics: OperatorMetrics, *, workers: int = 2) -> None:
        self.name = name
        self.queue: WorkQueue[ObjectKey] = WorkQueue()
        self._reconcile = reconcile
        self._metrics = metrics
        self._workers = workers
        self._running = threading.Event()
        self._threads: list[threading.Thread] = []
        metrics.watch_queue(name, lambda: len(self.queue))

    def start(self) -> None:
        """Start the workers; they are idle until this replica leads."""
        for number in range(self._workers):
            thread = threading.Thread(target=self._work, name=f"{self.name}-{number}", daemon=True)
            self._threads.append(thread)
            thread.start()

    @property
    def running(self) -> bool:
        """Whether all workers exist; only a defect ends one early."""
        return all(thread.is_alive() for thread in self._threads)

    def resume(self) -> None:
        """Let the workers work."""
        self._running.set()

    def pause(self) -> None:
        """Let the workers finish their current keys and take no others."""
        self._running.clear()

    def stop(self) -> None:
        """End the workers after their current keys."""
        self.queue.close()
        self._running.set()
        for thread in self._threads:
            thread.join(10.0)

    def _work(self) -> None:
        while True:
            self._running.wait()
            key = self.queue.take()
            if key is None:
                return
            if not self._running.is_set():
                self.queue.done(key, after_s=0.0)
                continue
            begun = time.perf_counter()
            outcome = self._attempt(key)
            self._metrics.reconciliations.labels(self.name, outcome).inc()
            self._metrics.seconds.labels(self.name).observe(time.perf_counter() - begun)

    def _attempt(self, key: ObjectKey) -> str:
        kind, namespace, name = key
        try:
            again = self._reconcile(key)
        except NotLeading:
            self.queue.done(key, after_s=1.0)
            return "not-leading"
        except ObjectConflict as conflict:
            # Somebody was faster; the watch shows what they wrote.
            _log.info("conflict", controller=self.name, kind=kind, namespace=namespace, name=name, error=str(conflict))
            self.queue.failed(key)
            return "conflict"
        except CoterieError as error:
            wait = self.queue.failed(key)
            _log.warning(
                "reconciliation failed",
                controller=self.name,
                kind=kind,
                namespace=namespace,
                name=name,
                error=str(error),
                retry_s=round(wait, 2),
            )
            return "error"
        except Exception:  # noqa: BLE001 - a defect must cost one object, not the controller
            wait = self.queue.failed(key)
            _log.exception(
                "reconciliation crashed", controller=self.name, kind=kind, namespace=namespace, name=name, retry_s=wait
            )
            return "crash"
        self.queue.done(key, after_s=again)
        return "again" if again is not None else "done"
