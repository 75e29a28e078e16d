"""The public API is a fixed list, and works as documented."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import coterie
from coterie import library

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_the_public_surface_is_this_list() -> None:
    """A new name is a decision; a lost one breaks somebody's program."""
    assert sorted(library.__all__) == [
        "AllowExcluded",
        "Answer",
        "Change",
        "Coarsen",
        "Config",
        "CoterieError",
        "Documents",
        "Fault",
        "Keep",
        "NotFound",
        "Notice",
        "Plan",
        "Prefer",
        "Reason",
        "Refusal",
        "Release",
        "Snapshot",
        "SpecErrors",
        "Tolerate",
        "Uncordon",
        "UsageError",
        "Verdict",
        "Workflow",
        "explain",
        "fit",
        "plan",
        "plan_as_json",
        "plan_workloads",
        "read_cluster",
        "read_configuration",
        "read_workflow",
        "read_workloads",
    ]
    assert dir(coterie) == sorted(library.__all__)
    assert all(getattr(coterie, name) is getattr(library, name) for name in library.__all__)


def test_what_is_not_public_is_not_there() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        _ = coterie.nonsense


def test_importing_coterie_loads_nothing_heavy() -> None:
    code = "import coterie, sys; print(sorted({'numpy', 'pydantic', 'jinja2', 'msgspec', 'yaml'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_plan_can_be_made_and_changed_in_a_few_lines() -> None:
    cluster = coterie.read_cluster(EXAMPLES / "refusals" / "cluster.yaml")
    workflow = coterie.read_workflow(EXAMPLES / "refusals" / "no-domain-fits.yaml")
    found = coterie.plan(workflow, cluster)
    refusal = found.gangs[0].decision.refusal
    assert found.verdict is coterie.Verdict.WAITING
    assert refusal is not None
    assert refusal.reason is coterie.Reason.NO_DOMAIN_FITS
    for way in refusal.ways_out:
        assert coterie.plan(workflow, cluster, changes=[way.change]).verdict is coterie.Verdict.PLACED
    assert coterie.plan_as_json(found)["verdict"] == "waiting"


def test_values_reach_the_template_with_their_type() -> None:
    cluster = coterie.read_cluster(EXAMPLES / "06-training-4x4x4" / "cluster.yaml")
    workflow = coterie.read_workflow(EXAMPLES / "06-training-4x4x4" / "workflow.yaml", {"data": 2})
    assert len(coterie.plan(workflow, cluster).gangs[0].gang.all_tasks()) == 32


def test_fit_counts_per_domain() -> None:
    cluster = coterie.read_cluster(EXAMPLES / "refusals" / "cluster.yaml")
    found = coterie.fit(cluster, level="rack", gpus=8, tasks=2)
    assert [(room.domain, room.now) for room in found.fit.rooms] == [
        (("a", "a1"), 3),
        (("a", "a2"), 2),
        (("b", "b1"), 2),
    ]
    assert found.fit.gangs(2) == (3, 6)


def test_levels_given_in_the_call_are_checked() -> None:
    cluster = coterie.read_cluster(EXAMPLES / "refusals" / "cluster.yaml")
    workflow = coterie.read_workflow(EXAMPLES / "refusals" / "no-domain-fits.yaml")
    with pytest.raises(coterie.SpecErrors, match="not a node label"):
        coterie.plan(workflow, cluster, levels={"rack": "no/such/label/"})


@pytest.mark.parametrize("reason", list(coterie.Reason))
def test_every_reason_has_a_page(reason: coterie.Reason) -> None:
    assert coterie.explain(reason).startswith(f"# {reason.value}")


def test_an_unknown_reason_is_answered_with_a_guess() -> None:
    with pytest.raises(coterie.NotFound) as error:
        coterie.explain("NoDomainFit")
    assert error.value.hint == 'Did you mean "NoDomainFits"?'


def test_the_documented_program_prints_what_the_page_shows() -> None:
    root = Path(__file__).parents[1]
    page = (root / "docs" / "library.md").read_text(encoding="utf-8")
    found = re.search(r"```python\n(.*?)```\s+```text\n(.*?)```", page, re.DOTALL)
    assert found is not None
    program, shown = found.groups()
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=root)
    assert done.stdout == shown
