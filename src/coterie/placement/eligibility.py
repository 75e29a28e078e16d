"""The nodes that are eligible for a shape, independent of their free capacity."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from coterie.gang.tree import Expression, Shape, Toleration
from coterie.topology.cluster import Bools, Cluster, Taint


def eligible(shape: Shape, cluster: Cluster, *, lift_transient: bool) -> Bools:
    """Return, for every node, whether selectors, affinity, taints and exclusions let the shape run there.

    With `lift_transient`, taints that Kubernetes sets for temporary conditions do not count.
    """
    mask = _tolerated(shape.tolerations, cluster, lift_transient=lift_transient)[cluster.taint_set]
    for key, value in shape.selector:
        mask = mask & _holds(Expression(key, "In", (value,)), cluster)
    if shape.affinity:
        any_term = np.zeros(len(cluster), dtype=bool)
        for term in shape.affinity:
            all_hold = np.ones(len(cluster), dtype=bool)
            for expression in term:
                all_hold &= _holds(expression, cluster)
            any_term |= all_hold
        mask = mask & any_term
    excluded = [cluster.position[name] for name in shape.excluded if name in cluster.position]
    if excluded:
        mask = mask.copy()
        mask[excluded] = False
    return mask


def untolerated(tolerations: Iterable[Toleration], taints: Iterable[Taint]) -> tuple[Taint, ...]:
    """Return the taints that keep a pod with these tolerations off a node."""
    known = tuple(tolerations)
    return tuple(
        taint
        for taint in taints
        if taint.effect != "PreferNoSchedule" and not any(_tolerates(each, taint) for each in known)
    )


def _tolerated(tolerations: tuple[Toleration, ...], cluster: Cluster, *, lift_transient: bool) -> Bools:
    """Return, for every distinct set of taints, whether a pod with these tolerations may be scheduled there."""
    return np.array(
        [
            all(lift_transient and taint.transient for taint in untolerated(tolerations, taints))
            for taints in cluster.taint_sets
        ],
        dtype=bool,
    )


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if not toleration.key:
        return toleration.operator == "Exists"
    return toleration.key == taint.key and (toleration.operator == "Exists" or toleration.value == taint.value)


def _holds(expression: Expression, cluster: Cluster) -> Bools:
    column = cluster.column(expression.key)
    answers = [_answers(expression, value) for value in column.values]
    missing = expression.operator in {"NotIn", "DoesNotExist"}
    # The last cell is for nodes without the label, whose code is -1.
    return np.array([*answers, missing], dtype=bool)[column.codes]


def _answers(expression: Expression, value: str) -> bool:
    match expression.operator:
        case "In":
            return value in expression.values
        case "NotIn":
            return value not in expression.values
        case "Exists":
            return True
        case "Gt" | "Lt":
            try:
                number, limit = int(value), int(expression.values[0])
            except (ValueError, IndexError):
                return False
            return number > limit if expression.operator == "Gt" else number < limit
        case _:
            return False
