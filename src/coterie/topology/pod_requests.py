"""The resources that a pod holds on its node, by Kubernetes' own rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from coterie.topology.quantity import Quantity, amount

Amounts = dict[str, int]
Quantities = Mapping[str, Quantity]


def amounts(quantities: Quantities | None) -> Amounts:
    """Return quantities in Coterie's units; raise ValueError with one clear sentence for an invalid one."""
    return {name: amount(name, quantity) for name, quantity in (quantities or {}).items()}


def asked(requests: Quantities | None, limits: Quantities | None) -> Amounts:
    """Return the requests of a container; a limit without a request counts as a request."""
    own = amounts(requests)
    if limits and not (requests and limits.keys() <= requests.keys()):
        return amounts(limits) | own
    return own


def pod_requests(
    containers: Iterable[Amounts],
    init_containers: Iterable[tuple[Amounts, bool]] = (),
    whole: tuple[Quantities | None, Quantities | None] = (None, None),
    overhead: Quantities | None = None,
) -> Amounts:
    """Return the positive amounts that a pod holds.

    The sum of containers and sidecars, or the peak of the init phase if that is higher. Requests and limits of the pod
    as a whole (`whole`) replace that sum; the runtime's overhead is added. Each init container is paired with whether
    it always restarts, which makes it a sidecar.
    """
    running: Amounts = {}
    for each in containers:
        _add(running, each)
    sidecars: Amounts = {}
    starting: Amounts = {}
    for each, restarts in init_containers:
        if restarts:
            _add(sidecars, each)
            _raise(starting, sidecars)
        else:
            moment = dict(each)
            _add(moment, sidecars)
            _raise(starting, moment)
    _add(running, sidecars)
    _raise(running, starting)
    requests, limits = whole
    running = amounts(limits) | running | amounts(requests)
    _add(running, amounts(overhead))
    return {name: value for name, value in running.items() if value}


def _add(total: Amounts, more: Amounts) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0) + value


def _raise(total: Amounts, least: Amounts) -> None:
    for name, value in least.items():
        if value > total.get(name, 0):
            total[name] = value
