"""Workflow texts for tests: the smallest valid task, and helpers for its surroundings."""

from __future__ import annotations

from collections.abc import Callable

from coterie.config.configuration import Pool
from coterie.errors import Fault, SpecErrors
from coterie.frontends.workflow.lower import LoweredWorkflow, lower
from coterie.frontends.workflow.read import Workflow, read_workflow
from coterie.topology.levels import Topology

LEVELS = Topology.of(
    ("zone", "topology.kubernetes.io/zone"), ("spine", "spine"), ("rack", "topology.kubernetes.io/rack")
)
POOL = Pool.for_levels(LEVELS)


def task(name: str, *fields: str) -> str:
    """Return a task in flow style."""
    return "{" + ", ".join((f"name: {name}", "image: i", "command: [run]", *fields)) + "}"


def plain(*tasks: str, extra: str = "") -> str:
    """Return a workflow of plain tasks."""
    return "workflow:\n  name: w\n  tasks:\n" + "".join(f"  - {each}\n" for each in tasks) + extra


def grouped(*groups: tuple[str, ...], extra: str = "") -> str:
    """Return a workflow of groups, each a name and its tasks."""
    body = "".join(
        f"  - name: {name}\n    tasks:\n" + "".join(f"    - {each}\n" for each in tasks) for name, *tasks in groups
    )
    return f"workflow:\n  name: w\n  groups:\n{body}{extra}"


def resource(body: str) -> str:
    """Return the section that gives the default resource spec, at the top level."""
    return f"resources:\n  default: {{{body}}}\n"


def read(text: str, *sets: str) -> Workflow:
    """Read a workflow from text."""
    return read_workflow(text.encode(), "w.yaml", sets=sets)


def lowered(text: str, pool: Pool = POOL) -> LoweredWorkflow:
    """Read and lower a workflow."""
    return lower(read(text), pool)


def refusal(call: Callable[[], object]) -> tuple[Fault, ...]:
    """Return the faults that a call gives, which may be none; anything else it raises is a test's failure."""
    try:
        call()
    except SpecErrors as error:
        return error.faults
    return ()


def faults(text: str, pool: Pool = POOL) -> tuple[Fault, ...]:
    """Return what is wrong with a workflow, which may be nothing."""
    return refusal(lambda: lowered(text, pool))
