"""The placement problem as an exact integer model, for sizes that enumeration cannot reach.

Tasks alike in shape and path are one class with a count, so the model has one integer per class and node. A required
group chooses one domain; a preferred group pays for each domain it uses and for each task outside all of them. Levels
are minimised one after the other, the finest first, each at the optimum of those before it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from ortools.sat.python import cp_model

from coterie.gang.tree import Gang, Group, Path, Shape
from coterie.topology.cluster import PODS
from coterie.topology.domains import Domains
from tests.placement.twin import Identity, TwinCapacity, Vector, accepts, home, leaves, spare

# Eight workers prove in seconds what two do not prove in a minute, also on two cores. Small models need only one.
WORKERS = 8
SMALL_MODEL = 200
SECONDS = 120.0

Class = tuple[Path, Shape]


class GaveUpError(Exception):
    """Raised when the solver neither found nor disproved a placement in its time."""


def optimum(
    gang: Gang, domains: Domains, anchors: Mapping[str, str], room: TwinCapacity = TwinCapacity.NOW
) -> Vector | None:
    """Return the least cost of a placement, the finest level first, or None when there is no placement."""
    question = _Question(gang, domains, anchors, room)
    solver = _solve(question.model)
    if solver is None:
        return None
    best: list[int] = []
    for level in reversed(domains.topology.names):
        cost = question.costs[level]
        value = solver.value(cost)
        if value > 0:
            question.model.minimize(cost)
            solver = _solve(question.model)
            if solver is None:
                raise AssertionError("a model that had a solution lost it")
            value = solver.value(cost)
        question.model.add(cost == value)
        best.append(value)
    return tuple(best)


def _solve(model: cp_model.CpModel) -> cp_model.CpSolver | None:
    """Return a solver that holds an optimal solution, or None when there is none."""
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1 if len(model.proto.variables) <= SMALL_MODEL else WORKERS
    solver.parameters.max_time_in_seconds = SECONDS
    status = solver.solve(model)
    if status == cp_model.OPTIMAL:
        return solver
    if status == cp_model.INFEASIBLE:
        return None
    raise GaveUpError(solver.status_name(status))


class _Question:
    """One gang on one cluster as constraints; `costs` says what is to be minimised at each level."""

    def __init__(self, gang: Gang, domains: Domains, anchors: Mapping[str, str], room: TwinCapacity) -> None:
        self.model = cp_model.CpModel()
        self.groups = {group.path: group for group in gang.walk()}
        self.homes = {
            level: [home(domains, node, level) for node in range(len(domains.cluster))]
            for level in domains.topology.names
        }
        at = {task: domains.cluster.position[node] for task, node in anchors.items()}
        self.anchored = {
            path: [self.homes[group.level][at[task.name]] for task in group.all_tasks() if task.name in at]
            for path, group in self.groups.items()
        }
        self.classes = Counter((path, task.shape) for path, task in leaves(gang) if task.name not in anchors)
        self.takes = {one: self._counts(number, one, domains, room) for number, one in enumerate(self.classes)}
        self._bound_by_capacity(domains, room)
        self.chosen = {path: self._choice(group) for path, group in self.groups.items() if group.required}
        self._keep_together()
        self.costs = {level: self._cost(level) for level in domains.topology.names}

    def _cost(self, level: str) -> cp_model.LinearExpr:
        """Return the extra domains of all preferred groups at a level."""
        preferred = [path for path, group in self.groups.items() if not group.required and group.level == level]
        return cp_model.LinearExpr.sum([self._price(path, self.homes[level]) for path in preferred])

    def _counts(self, number: int, one: Class, domains: Domains, room: TwinCapacity) -> dict[int, cp_model.IntVar]:
        """Make the count of one class on each node that can take any of it."""
        counts = {}
        for node, left in enumerate(spare(domains, room)):
            wants = ((PODS, 1), *one[1].requests)
            most = min(self.classes[one], *(left.get(name, 0) // amount for name, amount in wants))
            if most > 0 and accepts(domains, node, one[1], room):
                counts[node] = self.model.new_int_var(0, most, f"x{number}_{node}")
        self.model.add(sum(counts.values()) == self.classes[one])
        return counts

    def _bound_by_capacity(self, domains: Domains, room: TwinCapacity) -> None:
        for node, left in enumerate(spare(domains, room)):
            load: dict[str, list[cp_model.LinearExpr]] = defaultdict(list)
            for (_, shape), counts in self.takes.items():
                if node in counts:
                    for name, amount in ((PODS, 1), *shape.requests):
                        load[name].append(amount * counts[node])
            for name, terms in load.items():
                self.model.add(sum(terms) <= left[name])

    def _choice(self, group: Group) -> dict[Identity, cp_model.IntVar]:
        """Make a required group's choice of one domain; its anchored tasks have made it already."""
        options = {
            domain: self.model.new_bool_var(f"{group.path}{domain}")
            for domain in dict.fromkeys(self.homes[group.level])
            if domain is not None
        }
        self.model.add_exactly_one(options.values())
        for domain in self.anchored[group.path]:
            self.model.add(domain is not None and options[domain] == 1)
        return options

    def _keep_together(self) -> None:
        """Tie each class to the domain of the finest required group above it, and that group to the next above."""
        for (path, shape), count in self.classes.items():
            if above := self._required_above(path):
                where = self.homes[above.level]
                for domain, choice in self.chosen[above.path].items():
                    inside = [take for node, take in self.takes[path, shape].items() if where[node] == domain]
                    self.model.add(sum(inside) == count * choice)
        for path, options in self.chosen.items():
            if above := self._required_above(path[:-1]):
                for domain, choice in options.items():
                    around = self.chosen[above.path]
                    self.model.add_implication(
                        choice, next(around[outer] for outer in around if outer == domain[: len(outer)])
                    )

    def _required_above(self, path: Path) -> Group | None:
        """Return the finest required group on a path, its end included."""
        on_path = (self.groups[path[:depth]] for depth in range(len(path), 0, -1))
        return next((group for group in on_path if group.required), None)

    def _price(self, path: Path, homes: list[Identity | None]) -> cp_model.LinearExpr:
        """Return a preferred group's extra domains: those it uses, one more per task outside them all, less one."""
        below = [one for one in self.classes if one[0][: len(path)] == path]
        anchored = self.anchored[path]
        used: list[cp_model.LinearExpr] = []
        for domain in dict.fromkeys(homes):
            counts = {one: [take for node, take in self.takes[one].items() if homes[node] == domain] for one in below}
            if domain is None:
                used.extend(take for some in counts.values() for take in some)
            elif domain not in anchored and any(counts.values()):
                use = self.model.new_bool_var(f"{path}{domain}")
                for one, some in counts.items():
                    self.model.add(sum(some) <= self.classes[one] * use)
                used.append(use)
        certain = len(set(anchored) - {None}) + anchored.count(None)
        return cp_model.LinearExpr.sum(used) + (certain - 1)
