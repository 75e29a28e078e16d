"""The assembly of an operator: watches, controllers, election and servers, from start to stop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Any, Self

import structlog

from coterie.backends.base import registry
from coterie.backends.base.topology_resource import TopologyResource
from coterie.kube.api import Api, Timeouts, connect
from coterie.kube.apply import apply
from coterie.kube.cache import CacheChange
from coterie.kube.delete import delete
from coterie.kube.kinds import POD_CLIQUE_SET, VALIDATING_WEBHOOKS, ObjectKind, kind_of
from coterie.kube.reads import ObjectQuery, list_all
from coterie.kube.retry import RetryLimits
from coterie.operator.catalog import TopologyCatalog
from coterie.operator.controller import Controller
from coterie.operator.election import Election
from coterie.operator.endpoints import ServerThread, address_of, status_app
from coterie.operator.metrics import OperatorMetrics
from coterie.operator.settings import OWNABLE, TOPOLOGY_KINDS, OperatorSettings
from coterie.operator.topologies.reconciler import TopologyReconciler, TopologySettings
from coterie.operator.watches import SharedWatch
from coterie.operator.webhook.registration import NAME as REGISTRATION
from coterie.operator.webhook.registration import configuration, other_owner
from coterie.operator.webhook.server import Webhook, webhook_app
from coterie.operator.workloads.reconciler import WorkloadReconciler
from coterie.operator.workloads.references import TopologyReferences
from coterie.operator.writer import Writer

Object = dict[str, Any]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# How often leadership is checked while the first lists are read.
_LIST_S = 1.0

_log = structlog.get_logger("coterie.operator")


def run(settings: OperatorSettings, started: Callable[[str], None] = lambda _: None) -> None:
    """Run an operator until SIGINT or SIGTERM; `started` gets the address of its metrics once it answers."""
    operator = Operator(settings)
    stop = threading.Event()
    with _signalled(stop), operator:
        started(operator.address)
        stop.wait()
        _log.info("stopping", identity=settings.identity)


class Operator:
    """One replica; used as a context manager, which ends it gracefully."""

    def __init__(self, settings: OperatorSettings) -> None:
        self._settings = settings
        self._stack = ExitStack()
        self.metrics = OperatorMetrics()
        self.address = ""
        self._watches: dict[str, SharedWatch] = {}
        self._controllers: list[Controller] = []
        self._election: Election | None = None
        self._webhook: Webhook | None = None
        self.catalog = TopologyCatalog([])

    def __enter__(self) -> Self:
        with self._stack:
            self._start()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def leads(self) -> bool:
        """Whether this replica leads now."""
        return self._election is not None and self._election.leads

    def defect(self) -> str:
        """Return why this process has to be restarted, or an empty string."""
        ended = [each.kind.plural for each in self._watches.values() if not each.running]
        ended += [each.name for each in self._controllers if not each.running]
        return f"ended unexpectedly: {', '.join(ended)}" if ended else ""

    def problem(self) -> str:
        """Return why this replica is not ready, or an empty string."""
        for watch in self._watches.values():
            if not watch.settled:
                return f"{watch.kind.plural} have not been read yet"
        return ""

    def readiness(self) -> str:
        """Return why this replica cannot do all of its work, or an empty string."""
        unregistered = self._webhook is not None and not self._webhook.registered
        return self.problem() or ("the webhook is not registered" if unregistered else "")

    def _start(self) -> None:
        settings, stack = self._settings, self._stack
        timing = settings.timing
        # A taken address ends the start before anything is registered or written.
        status = self._bound_status(*address_of(settings.listen, "--listen")) if settings.listen else None
        reads = stack.enter_context(connect(settings.context, on_answer=self.metrics.count_request))
        writes = stack.enter_context(
            connect(
                settings.context,
                patience=RetryLimits(attempts=1, total_s=timing.write_s),
                timeouts=Timeouts(connect_s=timing.write_s, read_s=timing.write_s, answer_s=timing.write_s),
                on_answer=self.metrics.count_request,
            )
        )
        namespace = settings.lease_namespace or reads.namespace
        writer = Writer(reads, writes, lambda: self.leads)
        resource = _topology_resource()
        owned = self._owned(reads)
        followed = [kind for kind in owned if kind.name in TOPOLOGY_KINDS]
        workloads = [kind for kind in owned if kind.name not in TOPOLOGY_KINDS]
        # Admission and workloads need every topology, also those that another operator owns.
        every = settings.webhook or workloads
        seen = [kind for kind in OWNABLE if kind.name in TOPOLOGY_KINDS] if every else followed
        # The condition of a graph follows that of its PodCliqueSet.
        behind = [POD_CLIQUE_SET] if workloads else []
        for kind in (*seen, *behind, *workloads, kind_of({"apiVersion": resource.api_version, "kind": resource.kind})):
            if kind.name not in self._watches:
                self._watches[kind.name] = SharedWatch(reads, kind, absent_s=settings.absent_s)
        self.catalog = catalog = TopologyCatalog([self._watches[kind.name] for kind in seen])
        self._control_topologies(followed, resource, writer)
        if workloads:
            self._control_workloads(workloads, catalog, writer)
        if settings.webhook:
            self._admit(owned, reads, catalog)
        for watch in self._watches.values():
            watch.start()
            stack.callback(watch.stop)
        self._election = Election(writes, settings.identity, settings.lease, namespace, self._lead, timing=timing)
        for controller in self._controllers:
            controller.start()
        self._election.start()
        stack.callback(self._election.stop)
        # Called first: workers end before the lease is released.
        for controller in self._controllers:
            stack.callback(controller.stop)
        if status is not None:
            status.start()
            stack.callback(status.stop)
        _log.info("started", identity=settings.identity, kinds=[kind.name for kind in owned], address=self.address)

    def _bound_status(self, host: str, port: int) -> ServerThread:
        """Return the server of health and metrics, which has its port but does not answer yet."""
        server = ServerThread(status_app(self.defect, self.readiness, self.metrics.text), host, port)
        self._stack.callback(server.stop)
        self.address = f"http://{f'[{host}]' if ':' in host else host}:{server.port}"
        return server

    def _owned(self, api: Api) -> list[ObjectKind]:
        """Return the kinds to own: the named ones, else those for which no other operator has a webhook."""
        if self._settings.own:
            return [kind for kind in OWNABLE if kind.name in self._settings.own]
        others = list_all(api, ObjectQuery(VALIDATING_WEBHOOKS), Object).items
        owned = []
        for kind in OWNABLE:
            if owner := other_owner(kind, others):
                _log.warning("kind left to another operator", kind=kind.name, webhook=owner, told_otherwise_by="--own")
            else:
                owned.append(kind)
        return owned

    def _admit(self, kinds: list[ObjectKind], api: Api, catalog: TopologyCatalog) -> None:
        settings = self._settings
        app = webhook_app(lambda: None if self.problem() else catalog.known(), settings.cluster, self.metrics)
        host, port = address_of(settings.webhook, "--webhook")

        def register(authority: bytes) -> None:
            apply(api, configuration(kinds, webhook.url, authority, settings.webhook_service), reclaim=True)
            _log.info("webhook registered", url=webhook.url, kinds=[kind.name for kind in kinds])

        folder, check_s = settings.webhook_certificates, settings.certificate_check_s
        webhook = Webhook(app, host, port, register, ready=lambda: not self.problem(), folder=folder, check_s=check_s)
        webhook.start()
        self._webhook = webhook
        self._stack.callback(webhook.stop)
        if settings.webhook_cleanup:
            self._stack.callback(delete, api, VALIDATING_WEBHOOKS, REGISTRATION)

    def _control_topologies(self, owned: list[ObjectKind], resource: TopologyResource, writer: Writer) -> None:
        topologies = [self._watches[kind.name] for kind in owned]
        resources = self._watches[resource.kind]
        pace = TopologySettings(self._settings.cluster.schedulers, self._settings.settle_s)
        reconciler = TopologyReconciler(topologies, resources, resource, writer, self.metrics, pace)
        controller = Controller("topologies", reconciler, self.metrics)

        def all_again() -> None:
            for key in reconciler.all_keys():
                controller.queue.add(key)

        def resource_changed(change: CacheChange[Object]) -> None:
            for key in reconciler.keys_of(change):
                controller.queue.add(key)

        for watch in topologies:
            watch.subscribe(_added_to(controller, watch.kind))
        resources.subscribe(resource_changed, all_again)
        self._controllers.append(controller)

    def _control_workloads(self, owned: list[ObjectKind], catalog: TopologyCatalog, writer: Writer) -> None:
        references = TopologyReferences()
        sets = self._watches[POD_CLIQUE_SET.name]
        watches = [self._watches[kind.name] for kind in owned]
        cluster = self._settings.cluster
        reconciler = WorkloadReconciler(watches, sets, references, catalog.known, cluster, writer, self.metrics)
        controller = Controller("workloads", reconciler, self.metrics)

        def concerned(topology: str) -> None:
            for key in references.users(topology):
                controller.queue.add(key)

        def followed(watch: SharedWatch) -> Callable[[CacheChange[Object]], None]:
            def changed(change: CacheChange[Object]) -> None:
                for key in references.changed(watch.kind, change):
                    controller.queue.add(key)

            return changed

        for watch in {each.kind.name: each for each in (sets, *watches)}.values():
            watch.subscribe(followed(watch))
        catalog.subscribe(concerned)
        self._controllers.append(controller)

    def _lead(self, leads: bool) -> None:  # noqa: FBT001 - the only thing that is told
        self.metrics.leader.set(leads)
        if not leads:
            for controller in self._controllers:
                controller.pause()
            return
        threading.Thread(target=self._resume, name="resume", daemon=True).start()

    def _resume(self) -> None:
        """Let the controllers work once everything was read: a part of the objects would look like deletions."""
        for watch in self._watches.values():
            while not watch.wait_settled(_LIST_S):
                if not self.leads:
                    return
        for controller in self._controllers:
            controller.resume()


def _added_to(controller: Controller, kind: ObjectKind) -> Callable[[CacheChange[Object]], None]:
    def changed(change: CacheChange[Object]) -> None:
        controller.queue.add((kind.name, change.entry.meta.namespace, change.entry.meta.name))

    return changed


def _topology_resource() -> TopologyResource:
    """Return the topology resource of the scheduler that has one."""
    for name in registry.schedulers():
        if (make := registry.traits(name).topology_resource) is not None:
            return make()
    raise AssertionError("a scheduler has a topology resource")


@contextmanager
def _signalled(stop: threading.Event) -> Iterator[None]:
    """Let signals end the operator gracefully."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def asked(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    before = {each: signal.signal(each, asked) for each in _SIGNALS}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
