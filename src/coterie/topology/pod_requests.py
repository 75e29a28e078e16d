"""What a pod holds on its node, by Kubernetes' own rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from coterie.topology.quantity import Quantity, amount

Amounts = dict[str, int]
Quantities = Mapping[str, Quantity]


def amounts(quantities: Quantities | None) -> Amounts:
    """Return quantities in Coterie's units; raise ValueError with one clear sentence for one that is none."""
    return {name: amount(name, quantity) for name, quantity in (quantities or {}).items()}


def asked(requests: Quantities | None, limits: Quantities | None) -> Amounts:
    """Return what a container asks for; a limit alone is a request as well."""
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
    """Return what a pod holds: positive amounts only.

    Containers and sidecars together, or the hungriest moment of the init phase if that is more; what the pod asks for
    as a whole (`whole`: its requests and limits) takes the place of that sum; the runtime's overhead comes on top. An
    init container comes with whether it always restarts, which makes it a sidecar.
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
