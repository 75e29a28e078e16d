"""Families of hard worlds: each has one trap for greedy choices, weak bounds or sloppy objectives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random

from coterie.gang.tree import Shape
from coterie.topology.cluster import Node
from coterie.topology.levels import Topology
from tests.property.worlds.pieces import LEVELS, Leaf, Sketch, chance, node, shape

Trap = tuple[Topology, list[Node], Sketch]

ZONE_RACK = Topology.of(LEVELS[0], LEVELS[2])
RACK = Topology.of(LEVELS[2])
ONE = shape(gpu=1)
MOST_TASKS = 24


def three_partition(rng: Random) -> Trap:
    """Triples that must fill nodes to the last thousandth; sizes lie between a quarter and half of a node."""
    bins = rng.randint(2, 5)
    full = rng.choice((rng.randint(20, 60), rng.randint(200, 2000)))
    least, most = full // 4 + 1, (full - 1) // 2
    sizes: list[int] = []
    for _ in range(bins):
        first = rng.randint(least, min(most, full - 2 * least))
        second = rng.randint(max(least, full - first - most), min(most, full - first - least))
        sizes.extend((first, second, full - first - second))
    for _ in range(rng.choice((0, 2, 5))):
        giver, taker = rng.sample(range(len(sizes)), 2)
        if sizes[giver] > least and sizes[taker] < most:
            sizes[giver] -= 1
            sizes[taker] += 1
    nodes = [node(f"n{index}", {"rack": f"r{index}"}, cpu=full) for index in range(bins)]
    if chance(rng, 50) or 2 * len(sizes) > MOST_TASKS:
        return RACK, nodes, Sketch(leaves=[Leaf(shape(cpu=size)) for size in sizes])
    halves = [[shape(cpu=size // 2), shape(cpu=size - size // 2)] for size in sizes]
    return RACK, nodes, Sketch(groups=[_together("rack", pair) for pair in halves])


def many_equal_groups(rng: Random) -> Trap:
    """Ask for as many equal groups as whole racks hold, or one more; the rest of each rack is too small for any."""
    size = rng.randint(2, 4)
    racks: list[int] = []
    while sum(free // size for free in racks) < MOST_TASKS // size - 3:
        racks.append(rng.randint(size - 1, 3 * size - 1))
    whole = sum(free // size for free in racks)
    count = min(whole if chance(rng, 50) else whole + 1, MOST_TASKS // size)
    return RACK, _racks(rng, racks), Sketch(groups=[_together("rack", [ONE] * size) for _ in range(count)])


def one_group_too_many(rng: Random) -> Trap:
    """Room for every task and for all groups but one; below one zone, half of the time."""
    size = rng.randint(2, 4)
    count = MOST_TASKS // size - rng.randint(0, 2)
    racks: list[int] = []
    while sum(free // size for free in racks) < count - 1:
        racks.append(rng.choice((size, 2 * size - 1, 2 * size - 1)))
    while sum(racks) < count * size:
        racks.append(rng.randint(1, size - 1))
    groups = [_together("rack", [ONE] * size) for _ in range(count)]
    if chance(rng, 50):
        return ZONE_RACK, _racks(rng, racks), Sketch(groups=[Sketch("zone", required=True, groups=groups)])
    return ZONE_RACK, _racks(rng, racks), Sketch(groups=groups)


def capacities_off_by_one(rng: Random) -> Trap:
    """Racks that differ by one, and groups that fill them but for one; a matching exists or just does not."""
    base = rng.randint(2, 5)
    racks = [base + rng.randint(-1, 1) for _ in range(rng.randint(3, MOST_TASKS // (base + 1)))]
    wants = [max(1, free - (1 if chance(rng, 15) else 0)) for free in racks]
    for _ in range(rng.choice((0, 1, 2))):
        giver, taker = rng.sample(range(len(wants)), 2)
        if wants[giver] > 1:
            wants[giver] -= 1
            wants[taker] += 1
    rng.shuffle(wants)
    return RACK, _racks(rng, racks), Sketch(groups=[_together("rack", [ONE] * want) for want in wants])


def interleaved_shapes(rng: Random) -> Trap:
    """Two shapes, one heavy on GPUs and one on cpu, that only fit when every node takes some of each."""
    heavy = shape(gpu=rng.randint(2, 5), cpu=rng.randint(1, 2))
    light = shape(gpu=rng.randint(0, 1), cpu=rng.randint(3, 7))
    each = (rng.randint(1, 2), rng.randint(1, 2))
    count = rng.randint(2, MOST_TASKS // sum(each))
    gpu, cpu = (
        sum(number * one.amount(name) for number, one in zip(each, (heavy, light), strict=True)) for name in _BOTH
    )
    nodes = [node(f"n{index}", {"rack": f"r{index % 3}"}, gpu=gpu, cpu=cpu) for index in range(count)]
    shapes = [heavy] * (each[0] * count) + [light] * (each[1] * count)
    if chance(rng, 50):
        shapes[0] = light if chance(rng, 50) else shape(gpu=1, cpu=cpu)
    if chance(rng, 50):
        return RACK, nodes, Sketch(leaves=[Leaf(one) for one in shapes])
    per_rack = [sum(1 for index in range(count) if index % 3 == rack) for rack in range(min(3, count))]
    groups = [_together("rack", [heavy] * (each[0] * many) + [light] * (each[1] * many)) for many in per_rack]
    if shapes[0] != heavy:
        groups[0].leaves[0] = Leaf(shapes[0])
    return RACK, nodes, Sketch(groups=groups)


_BOTH = ("nvidia.com/gpu", "cpu")


def six_and_five(rng: Random) -> Trap:
    """Racks of 6 and 5, groups of 3, 3 and 5, and their cousins: the tightest rack is the wrong one to begin with."""
    kin = rng.choice((((3, 3), (5,)), ((4, 4), (7,)), ((2, 2, 2), (5,)), ((5, 3), (4, 3), (6,)), ((3, 3), (4,), (5,))))
    times = rng.randint(1, max(1, MOST_TASKS // sum(sum(parts) for parts in kin)))
    parts = [one for one in kin for _ in range(times)]
    racks = [sum(one) for one in parts]
    wants = [want for one in parts for want in one]
    if chance(rng, 50):
        shrink = rng.randrange(len(racks))
        racks[shrink] -= 1
        if chance(rng, 60):
            racks[(shrink + 1) % len(racks)] += 1
    rng.shuffle(wants)
    if chance(rng, 50):
        return RACK, _racks(rng, racks), Sketch(groups=[_together("rack", [ONE] * want) for want in wants])
    # One task per two of a group's GPUs, where it comes out even: the same trap with fewer, larger tasks.
    groups = [_together("rack", [shape(gpu=2)] * (want // 2) + [ONE] * (want % 2)) for want in wants]
    return RACK, _racks(rng, racks), Sketch(groups=groups)


def nested_zones(rng: Random) -> Trap:
    """Zones over several rack groups: all have room enough, at most one has the right racks."""
    right = [rng.randint(2, 5) for _ in range(rng.randint(2, 4))]
    zones = []
    for _ in range(rng.randint(1, 3)):
        wrong = list(right)
        giver = rng.randrange(len(wrong))
        wrong[giver] -= 1
        wrong.append(rng.randint(1, 2))
        zones.append(wrong)
    if chance(rng, 55):
        zones.append([*right, 1])
    rng.shuffle(zones)
    nodes = [one for index, racks in enumerate(zones) for one in _racks(rng, racks, f"z{index}")]
    zone = Sketch("zone", required=True, groups=[_together("rack", [ONE] * want) for want in right])
    rest = Sketch("zone", required=chance(rng, 50), leaves=[Leaf(ONE)] * rng.randint(1, 3))
    return ZONE_RACK, nodes, Sketch(groups=[zone, rest] if chance(rng, 50) else [zone])


def preferred_tradeoff(rng: Random) -> Trap:
    """Whole racks lie in different zones, and one zone has only pieces: the finer level must win."""
    zones = [[rng.choice((1, 2, 2, 3, 4, 6)) for _ in range(rng.randint(1, 4))] for _ in range(rng.randint(2, 4))]
    nodes = [one for index, racks in enumerate(zones) for one in _racks(rng, racks, f"z{index}")]
    free = min(MOST_TASKS, sum(sum(racks) for racks in zones))
    inner: list[Sketch] = []
    while free > 1 and len(inner) < 4:
        many = min(free, rng.randint(2, 6))
        free -= many
        inner.append(Sketch("rack", required=chance(rng, 15), leaves=[Leaf(ONE)] * many))
    cut = rng.randint(0, len(inner))
    outer = [Sketch("zone", required=chance(rng, 15), groups=some) for some in (inner[:cut], inner[cut:]) if some]
    return ZONE_RACK, nodes, Sketch(groups=outer)


def loose_nodes(rng: Random) -> Trap:
    """Large nodes without a rack, some without a zone: tempting, and yet each task there stands alone."""
    racks = _racks(rng, [rng.randint(1, 4) for _ in range(rng.randint(1, 4))], "z0")
    loose = [
        node(f"loose{index}", rng.choice(({}, {"zone": "z0"}, {"zone": "z1"}, {"rack": "r0"})), gpu=rng.randint(2, 8))
        for index in range(rng.randint(1, 3))
    ]
    groups = [
        Sketch(rng.choice(("zone", "rack", "rack")), required=chance(rng, 20), leaves=[Leaf(ONE)] * rng.randint(1, 5))
        for _ in range(rng.randint(1, 4))
    ]
    for group in groups:
        if group.level == "zone" and chance(rng, 60):
            group.groups.append(
                Sketch("rack", required=chance(rng, 20), leaves=[Leaf(shape(gpu=rng.randint(1, 2)))] * 2)
            )
    return ZONE_RACK, [*racks, *loose], Sketch(groups=groups)


def equal_zones(rng: Random) -> Trap:
    """Equal racks in equal zones: which two of them a group takes makes no difference, but whether in one zone does."""
    zones, racks, size = rng.randint(2, 3), rng.randint(2, 3), rng.randint(1, 2)
    nodes = [
        node(f"z{zone}-r{rack}", {"zone": f"z{zone}", "rack": f"r{rack}"}, gpu=size)
        for zone in range(zones)
        for rack in range(racks)
    ]
    nodes += [node(f"z{zone}-cpu", {"zone": f"z{zone}"}, cpu=1000) for zone in range(zones)]
    spread = Sketch("rack", required=False, leaves=[Leaf(ONE)] * (size + rng.randint(1, size)))
    left = zones * racks * size - spread.size()
    groups = [spread]
    for number in range(zones):
        many = rng.randint(1, max(1, left - (zones - number - 1))) if chance(rng, 30) else max(1, left // zones)
        helper = [Leaf(shape(cpu=1000))] if chance(rng, 80) else []
        groups.append(Sketch("zone", required=chance(rng, 50), leaves=[*[Leaf(ONE)] * min(many, 5), *helper]))
    return ZONE_RACK, nodes, Sketch(groups=groups)


TRAPS: tuple[Callable[[Random], Trap], ...] = (
    three_partition,
    many_equal_groups,
    one_group_too_many,
    capacities_off_by_one,
    interleaved_shapes,
    six_and_five,
    nested_zones,
    preferred_tradeoff,
    loose_nodes,
    equal_zones,
)


def _together(level: str, shapes: Iterable[Shape]) -> Sketch:
    return Sketch(level, required=True, leaves=[Leaf(one) for one in shapes])


def _racks(rng: Random, racks: Sequence[int], zone: str = "z0") -> list[Node]:
    """Return racks with so many GPUs each, on one node or on several."""
    nodes: list[Node] = []
    for index, gpus in enumerate(racks):
        homes = {"zone": zone, "rack": f"r{index}"}
        cut = rng.randint(0, gpus) if chance(rng, 40) else 0
        nodes.extend(
            node(f"{zone}-r{index}-{gpu}{side}", homes, gpu=gpu)
            for side, gpu in zip("ab", (gpus - cut, cut), strict=True)
            if gpu
        )
    return nodes
