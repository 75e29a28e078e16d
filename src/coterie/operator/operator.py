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
from coterie.errors import NotFound
from coterie.frontends.admission import KnownTopologies
from coterie.kube.api import Api, Timeouts, connect
from coterie.kube.apply import apply
from coterie.kube.cache import CacheChange, ChangeType
from coterie.kube.delete import delete
from coterie.kube.kinds import POD_CLIQUE_SET, VALIDATING_WEBHOOKS, ObjectKind, kind_of
from coterie.kube.reads import ObjectQuery, find, list_all
from coterie.kube.retry import RetryLimits
from coterie.kube.write import json_patch
from coterie.operator.catalog import TopologyCatalog
from coterie.operator.controller import Controller
from coterie.operator.election import Election
from coterie.operator.endpoints import ServerThread, address_of, status_app
from coterie.operator.metrics import OperatorMetrics
from coterie.operator.ownership import Ownership
from coterie.operator.settings import OWNABLE, TOPOLOGY_KINDS, OperatorSettings
from coterie.operator.topologies.reconciler import TopologyReconciler, TopologySettings
from coterie.operator.watches import SharedWatch
from coterie.operator.webhook.registration import NAME as REGISTRATION
from coterie.operator.webhook.registration import authority_patch, configuration, lacks_authority
from coterie.operator.webhook.server import Reviewer, Webhook, webhook_app
from coterie.operator.workloads.reconciler import WorkloadReconciler
from coterie.operator.workloads.references import TopologyReferences
from coterie.operator.writer import Writer

Object = dict[str, Any]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# How often leadership is checked while the first lists are read.
_LIST_S = 1.0
# An API server waits five seconds for a webhook, which may ask it for a topology of each kind meanwhile.
_LOOKUP_S = 1.0

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
        webhook = self._webhook
        # A registration of a manifest may be removed to unblock a cluster: this replica could answer nevertheless.
        by_manifest = bool(self._settings.webhook_configuration)
        unregistered = webhook is not None and not (webhook.was_registered if by_manifest else webhook.registered)
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
        lookups = stack.enter_context(
            connect(
                settings.context,
                patience=RetryLimits(attempts=1, total_s=_LOOKUP_S),
                timeouts=Timeouts(connect_s=_LOOKUP_S, read_s=_LOOKUP_S, answer_s=_LOOKUP_S),
                on_answer=self.metrics.count_request,
            )
        )
        writer = Writer(reads, writes, lambda: self.leads)
        resource = _topology_resource()
        candidates = [kind for kind in OWNABLE if not settings.own or kind.name in settings.own]
        ownership = self._ownership(candidates, reads)
        followed = [kind for kind in candidates if kind.name in TOPOLOGY_KINDS]
        workloads = [kind for kind in candidates if kind.name not in TOPOLOGY_KINDS]
        # Admission and workloads need every topology, also those that another operator owns.
        every = settings.webhook or workloads
        seen = [kind for kind in OWNABLE if kind.name in TOPOLOGY_KINDS] if every else followed
        # The condition of a graph follows that of its PodCliqueSet.
        behind = [POD_CLIQUE_SET] if workloads else []
        for kind in (*seen, *behind, *workloads, kind_of({"apiVersion": resource.api_version, "kind": resource.kind})):
            if kind.name not in self._watches:
                self._watches[kind.name] = SharedWatch(reads, kind, absent_s=settings.absent_s)
        self.catalog = catalog = TopologyCatalog([self._watches[kind.name] for kind in seen], lookups)
        self._control_topologies(followed, resource, writer, ownership)
        if workloads:
            self._control_workloads(workloads, catalog, writer, ownership)
        if settings.webhook:
            self._admit(ownership, reads, catalog)
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
        _log.info("started", identity=settings.identity, kinds=[kind.name for kind in candidates], address=self.address)

    def _bound_status(self, host: str, port: int) -> ServerThread:
        """Return the server of health and metrics, which has its port but does not answer yet."""
        server = ServerThread(status_app(self.defect, self.readiness, self.metrics.text), host, port)
        self._stack.callback(server.stop)
        self.address = f"http://{f'[{host}]' if ':' in host else host}:{server.port}"
        return server

    def _ownership(self, candidates: list[ObjectKind], api: Api) -> Ownership:
        """Return the ownership of kinds: of the named ones, else of those for which no other operator has a webhook."""
        settings = self._settings
        watch = None
        if not settings.own or settings.webhook:
            # A cluster that cannot be reached, or that does not say who owns what, ends the start.
            list_all(api, ObjectQuery(VALIDATING_WEBHOOKS), Object)
            watch = SharedWatch(api, VALIDATING_WEBHOOKS, absent_s=settings.absent_s)
            self._watches[VALIDATING_WEBHOOKS.name] = watch
        own = (REGISTRATION, settings.webhook_configuration)
        return Ownership(candidates, own, None if settings.own else watch)

    def _admit(self, ownership: Ownership, api: Api, catalog: TopologyCatalog) -> None:
        settings = self._settings
        existing = settings.webhook_configuration

        def known() -> KnownTopologies | None:
            return None if self.problem() else catalog.known()

        app = webhook_app(Reviewer(known, settings.cluster, catalog.current, ownership.owns), self.metrics)
        host, port = address_of(settings.webhook, "--webhook")

        def register(authority: bytes) -> None:
            kinds = ownership.kinds
            if existing:
                _trust(api, existing, authority)
            else:
                apply(api, configuration(kinds, webhook.url, authority), reclaim=True)
            _log.info("webhook registered", url=webhook.url, kinds=[kind.name for kind in kinds])

        def registration_changed(change: CacheChange[Object]) -> None:
            if change.entry.meta.name != (existing or REGISTRATION):
                return
            gone = change.did is ChangeType.DELETED
            # What others write into a registration of the operator's own stays: it may be a replica elsewhere.
            if gone or (existing and lacks_authority(change.entry.value)):
                webhook.register_again()

        folder, check_s = settings.webhook_certificates, settings.certificate_check_s
        webhook = Webhook(app, host, port, register, ready=lambda: not self.problem(), folder=folder, check_s=check_s)
        self._watches[VALIDATING_WEBHOOKS.name].subscribe(registration_changed)
        if not existing:
            ownership.subscribe(lambda _: webhook.register_again())
        webhook.start()
        self._webhook = webhook
        self._stack.callback(webhook.stop)
        if settings.webhook_cleanup:
            self._stack.callback(delete, api, VALIDATING_WEBHOOKS, REGISTRATION)

    def _control_topologies(
        self, kinds: list[ObjectKind], resource: TopologyResource, writer: Writer, ownership: Ownership
    ) -> None:
        topologies = [self._watches[kind.name] for kind in kinds]
        resources = self._watches[resource.kind]
        pace = TopologySettings(self._settings.cluster.schedulers, self._settings.settle_s)
        reconciler = TopologyReconciler(topologies, resources, resource, writer, self.metrics, pace, ownership.owns)
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
        ownership.subscribe(lambda _: all_again())
        self._controllers.append(controller)

    def _control_workloads(
        self, kinds: list[ObjectKind], catalog: TopologyCatalog, writer: Writer, ownership: Ownership
    ) -> None:
        references = TopologyReferences()
        sets = self._watches[POD_CLIQUE_SET.name]
        watches = [self._watches[kind.name] for kind in kinds]
        cluster = self._settings.cluster
        reconciler = WorkloadReconciler(
            watches, sets, references, catalog, cluster, writer, self.metrics, ownership.owns
        )
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

        def all_again(kinds: frozenset[str]) -> None:
            for key in reconciler.all_keys():
                if key[0] in kinds:
                    controller.queue.add(key)

        catalog.subscribe(concerned)
        ownership.subscribe(all_again)
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


def _trust(api: Api, name: str, authority: bytes) -> None:
    """Let every webhook of a registration trust an authority."""
    there = find(api, VALIDATING_WEBHOOKS, name, Object)
    if there is None:
        hint = "Apply deploy/operator, which has it, or leave out --webhook-configuration."
        raise NotFound(f'there is no ValidatingWebhookConfiguration "{name}"', hint)
    if operations := authority_patch(there, authority):
        json_patch(api, VALIDATING_WEBHOOKS, name, operations)


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
