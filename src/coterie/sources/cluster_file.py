"""Coterie's own cluster file: nodes one by one, or a shorthand that expands, and the pods in use.

    topology_keys:                    # optional: the levels, coarsest first
    - {key: zone, label: topology.kubernetes.io/zone}
    - {key: rack, label: topology.kubernetes.io/rack}
    nodes:                            # one by one
    - name: n1
      labels: {disk: nvme}
      domains: {zone: a, rack: r1}    # short for the labels of topology_keys
      gpu: 8                          # short names: cpu (cores), memory, gpu, storage, pods; the full ones go below
      allocatable: {example.com/nic: 2}
      taints: [{key: dedicated, value: ml, effect: NoSchedule}]
      cordoned: true
      ready: false
    fleet:                            # shorthand: every combination of the domains, each with `nodes` nodes
    - domains: {zone: [b, c], rack: 4}     # a value, a list of values, or a count: rack1 to rack4
      nodes: 18
      name: "{zone}-{rack}-{i:02}"    # {n} counts over the block, {i} within the domain, {zone} is a domain's value
      gpu: 4                          # and every other field of a node
    pods:                             # the pods in use
    - {name: default/p1, node: n1, gpu: 4, owner: wf-12}
    - {owner: wf-13, gpu: 8, nodes: [n2, n3]}   # one on each node
    - {name: default/p2, node: n1, requests: {cpu: 2}, daemon: true, terminating: true, labels: {…}}

Without `name`, fleet nodes are called after their domain: `b-rack1-n1`. A node has the label kubernetes.io/hostname,
with its name, unless the entry sets another one. Of a pod's labels those of Coterie's own tasks count:
coterie.dev/workflow, /group and /task.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from coterie.errors import nearest
from coterie.sources import Snapshot
from coterie.sources.assemble import MAX_NODES, assemble, refuse, shortened
from coterie.sources.fields import Fields, Locate, Path, named
from coterie.sources.fleet import known_levels, node_names, read_spread
from coterie.sources.pods_in_use import read_pods
from coterie.sources.shapes import SHORT_NAMES, read_amounts
from coterie.topology.cluster import Node, Taint
from coterie.topology.levels import HOSTNAME, Topology, level_faults

_TOP = ("topology_keys", "nodes", "fleet", "pods")
_NODE = ("name", "labels", "domains", "allocatable", "taints", "cordoned", "ready", *SHORT_NAMES)
_FLEET = (*_NODE, "nodes")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")


def read_cluster_file(data: object, place: Locate) -> Snapshot:
    """Return the snapshot of a loaded cluster file; raise SpecErrors with every fault, located by `place`."""
    fields = Fields(place)
    if not isinstance(data, Mapping) or "kind" in data or "items" in data:
        _no_cluster_file(fields, data)
    document = fields.mapping(data, (), _TOP)
    topology = _topology(fields, document)
    nodes = [*_nodes(fields, document, topology), *_fleet(fields, document, topology)]
    if not nodes and not fields.faults:
        fields.fault((), "there are no nodes in it", 'List nodes under "nodes", or many at once under "fleet".')
    _one_of_each(fields, nodes)
    # With an unreadable node entry, a pod on an unknown node may still be valid.
    complete = len({path for _, path in nodes}) == sum(_size(document.get(part)) for part in ("nodes", "fleet"))
    pods = read_pods(fields, document.get("pods"), {node.name for node, _ in nodes} if complete else frozenset())
    refuse(fields.faults)
    assembly = assemble([node for node, _ in nodes], pods, place(()))
    return Snapshot(assembly.cluster, topology, (*fields.notices, *assembly.notices))


def _size(value: object) -> int:
    return len(value) if isinstance(value, list | tuple) else 0


def _no_cluster_file(fields: Fields, data: object) -> None:
    if not isinstance(data, Mapping):
        fields.wrong((), data, "a mapping", f"Its fields: {', '.join(_TOP)}.")
    else:
        fields.fault(
            ("kind",) if "kind" in data else ("items",),
            "this is a Kubernetes object, not a cluster file",
            "For a cluster as Kubernetes has it: kubectl get nodes,pods -A -o json > snapshot.json",
        )
    refuse(fields.faults)


def _topology(fields: Fields, document: Mapping[str, object]) -> Topology | None:
    path: Path = ("topology_keys",)
    if document.get("topology_keys") is None:
        return None
    before = len(fields.faults)
    pairs = []
    for index, item in enumerate(fields.items(document["topology_keys"], path)):
        here = (*path, index)
        entry = fields.mapping(item, here, ("key", "label"))
        if missing := [name for name in ("key", "label") if name not in entry]:
            if isinstance(item, Mapping):
                fields.fault(here, f"{named(here)} lacks {' and '.join(missing)}", "{key: rack, label: NODE-LABEL}")
            continue
        pairs.append((fields.text(entry["key"], (*here, "key")), fields.text(entry["label"], (*here, "label"))))
    if len(fields.faults) == before:
        for fault in level_faults(pairs):
            fields.fault((*path, *fault.path), fault.message, fault.hint)
    return Topology.of(*pairs)


def _nodes(fields: Fields, document: Mapping[str, object], topology: Topology | None) -> Iterator[tuple[Node, Path]]:
    for index, item in enumerate(fields.items(document.get("nodes"), ("nodes",))):
        path: Path = ("nodes", index)
        entry = fields.mapping(item, path, _NODE)
        if item is not None and not isinstance(item, Mapping):
            continue
        shape = _shape(fields, entry, path)
        written = fields.mapping(entry.get("domains"), (*path, "domains"))
        levels = known_levels(fields, written, (*path, "domains"), topology)
        values = tuple(fields.label_value(written[level], (*path, "domains", level)) for level in levels)
        if "name" not in entry:
            fields.fault(path, f"{named(path)} has no name", "A node needs a name: {name: n1, gpu: 8}.")
            continue
        name = fields.text(entry["name"], (*path, "name"))
        if name:
            yield _node(fields, name, shape, _domain_labels(topology, levels, values), path), path


def _fleet(fields: Fields, document: Mapping[str, object], topology: Topology | None) -> Iterator[tuple[Node, Path]]:
    total = 0
    for index, item in enumerate(fields.items(document.get("fleet"), ("fleet",))):
        path: Path = ("fleet", index)
        entry = fields.mapping(item, path, _FLEET)
        shape = _shape(fields, entry, path)
        spread = read_spread(fields, entry, path, topology)
        total += spread.size if spread else 0
        if spread is None:
            continue
        if total > MAX_NODES:
            fields.fault(path, f"up to here the fleet has {total:,} nodes: at most {MAX_NODES:,} are allowed")
            return
        before = len(fields.faults)
        for name, values in node_names(fields, entry.get("name"), (*path, "name"), spread):
            yield _node(fields, name, shape, _domain_labels(topology, spread.levels, values), path), path
            if len(fields.faults) > before:  # a fault of one node of a block is a fault of all
                break


def _shape(fields: Fields, entry: Mapping[str, object], path: Path) -> Node:
    """Return the fields of a node except its name and domains."""
    return Node(
        name="",
        labels=fields.labels(entry.get("labels"), (*path, "labels")),
        allocatable=read_amounts(fields, entry, path, "allocatable", offered=True),
        taints=_taints(fields, entry.get("taints"), (*path, "taints")),
        cordoned=fields.flag(entry.get("cordoned"), (*path, "cordoned")),
        ready=fields.flag(entry["ready"], (*path, "ready")) if entry.get("ready") is not None else True,
    )


def _domain_labels(topology: Topology | None, levels: tuple[str, ...], values: tuple[str, ...]) -> dict[str, str]:
    return {topology.label(level): value for level, value in zip(levels, values, strict=True)} if topology else {}


def _node(fields: Fields, name: str, shape: Node, domains: Mapping[str, str], path: Path) -> Node:
    if not _NAME.fullmatch(name):
        fields.fault(
            (*path, "name"),
            f'"{shortened(name, 60)}" cannot be the name of a node',
            'At most 253 letters, digits, "-", "_" and ".", beginning and ending with a letter or digit.',
        )
    labels = {**shape.labels, **domains}
    for label, value in domains.items():
        if shape.labels.get(label, value) != value:
            fields.fault((*path, "labels", label), f'label "{label}" contradicts the "domains" of {named(path)}')
    if len(name) <= 63:
        labels.setdefault(HOSTNAME, name)
    return Node(name, labels, shape.allocatable, shape.taints, shape.cordoned, shape.ready)


def _taints(fields: Fields, value: object, path: Path) -> tuple[Taint, ...]:
    taints = []
    for index, item in enumerate(fields.items(value, path)):
        here = (*path, index)
        entry = fields.mapping(item, here, ("key", "value", "effect"))
        key = fields.text(entry.get("key"), (*here, "key"))
        effect = fields.text(entry.get("effect", "NoSchedule"), (*here, "effect"))
        if effect not in _EFFECTS:
            guess = nearest(effect, _EFFECTS)
            hint = f'Did you mean "{guess}"?' if guess else f"One of {', '.join(_EFFECTS)}."
            fields.fault((*here, "effect"), f'"{shortened(effect, 60)}" is not the effect of a taint', hint)
        taints.append(Taint(key, fields.label_value(entry.get("value", ""), (*here, "value")), effect))
    return tuple(taints)


def _one_of_each(fields: Fields, nodes: list[tuple[Node, Path]]) -> None:
    first: dict[str, Path] = {}
    for node, path in nodes:
        if (other := first.setdefault(node.name, path)) != path:
            fields.fault(path, f'{named(path)} makes a node "{node.name}", but {named(other)} made one already')
