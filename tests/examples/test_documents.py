"""Documents stay true: their commands are run, fields and options are compared with the code, links resolve."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer

from coterie.cli.app import app
from coterie.cli.exit_codes import Exit
from coterie.config import model as config_model
from coterie.config import pod_template
from coterie.document.schema import DocumentModel, named_fields
from coterie.errors import Reason
from coterie.frontends.dynamo import manifest as graph_manifest
from coterie.frontends.grove import topology_model
from coterie.frontends.grove.conditions import REASONS
from coterie.frontends.grove.podcliqueset import manifest
from coterie.frontends.workflow import model
from coterie.sources import cluster_file, pods_in_use
from tests.examples.console import ROOT, refreshed

_PAGES = ROOT / "src/coterie/pages"
_LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")

DOCUMENTS = sorted(
    [
        ROOT / "README.md",
        ROOT / "CHANGELOG.md",
        ROOT / "CONTRIBUTING.md",
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "examples").rglob("*.md"),
    ]
)

_WORKFLOW_SECTIONS: dict[str, type[DocumentModel]] = {
    "Top level": model.WorkflowFile,
    "workflow": model.WorkflowSpec,
    "Groups": model.GroupSpec,
    "Tasks": model.TaskSpec,
    "Resources": model.ResourceSpec,
    "Topology requirements": model.TopologyRequirement,
    "Inputs": model.TaskInput,
    "Outputs": model.TaskOutput,
    "Files": model.TaskFile,
    "Exit actions": model.ExitActions,
    "Checkpoints": model.Checkpoint,
    "Timeouts": model.Timeout,
}
_CONFIG_SECTIONS: dict[str, type[DocumentModel]] = {
    "Top level": config_model.ConfigModel,
    "Backends": config_model.BackendModel,
    "Pools": config_model.PoolModel,
    "Levels": config_model.LevelModel,
    "GPU quotas": config_model.GpuQuotaModel,
    "Tolerations": config_model.PoolTolerationModel,
    "Platforms": config_model.PlatformModel,
    "Workspace": config_model.WorkspaceModel,
    "Pod template": pod_template.PodTemplateModel,
}
_TEMPLATE_SECTIONS: dict[str, type[DocumentModel]] = {
    "Metadata of the template": pod_template.TemplateMetadataModel,
    "Spec of the template": pod_template.TemplateSpecModel,
    "The task's container": pod_template.TaskContainerModel,
    "Sidecars and init containers": pod_template.InitContainerModel,
    "Tolerations of the template": pod_template.TemplateTolerationModel,
}
_TOPOLOGY_SECTIONS: dict[str, type[DocumentModel]] = {
    "ClusterTopology": topology_model.TopologySpec,
    "ClusterTopologyBinding": topology_model.BindingSpec,
    "Levels": topology_model.TopologyLevelModel,
    "References": topology_model.ReferenceModel,
}
_SET_SECTIONS: dict[str, type[DocumentModel]] = {
    "Topology constraints": manifest.ConstraintModel,
    "Spec": manifest.SetSpecModel,
    "Template": manifest.TemplateModel,
    "Cliques": manifest.CliqueModel,
    "Clique spec": manifest.CliqueSpecModel,
    "Scaling groups": manifest.GroupModel,
}


def _name(file: Path) -> str:
    return str(file.relative_to(ROOT))


def _prose(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)


def _section(text: str, title: str) -> str:
    found = re.search(rf"^##+ {re.escape(title)}\n(.*?)(?=^##|\Z)", _prose(text), re.DOTALL | re.MULTILINE)
    assert found, f"there is no section {title}"
    return found[1]


def _rows(section: str) -> set[str]:
    return set(re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE))


def _anchors(text: str) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", _prose(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("document", DOCUMENTS, ids=_name)
def test_commands_in_a_document_print_what_it_shows(document: Path, *, rewrite: bool) -> None:
    written = document.read_text(encoding="utf-8")
    real = refreshed(written)

    if rewrite and written != real:
        document.write_text(real, encoding="utf-8")
    else:
        assert written == real


@pytest.mark.parametrize("document", DOCUMENTS, ids=_name)
def test_relative_links_resolve(document: Path) -> None:
    for link in _LINK.finditer(document.read_text(encoding="utf-8")):
        target, _, anchor = link["target"].partition("#")
        if "://" in target:
            continue
        file = (document.parent / target).resolve() if target else document
        assert file.exists(), f"{link[0]} leads nowhere"
        assert file.is_relative_to(ROOT), f"{link[0]} leaves the repository"
        if anchor:
            assert anchor in _anchors(file.read_text(encoding="utf-8")), f"{link[0]} has no such heading"


def test_every_reason_and_condition_has_a_page_and_warnings_and_errors_have_one_for_all() -> None:
    named = {*(reason.value for reason in Reason), *REASONS, "warnings", "errors"}
    assert {file.stem for file in _PAGES.glob("*.md")} == named


@pytest.mark.parametrize("reason", Reason)
def test_a_page_fits_a_terminal(reason: Reason) -> None:
    lines = (_PAGES / f"{reason.value}.md").read_text(encoding="utf-8").splitlines()

    assert lines[0] == f"# {reason.value}"
    assert max(map(len, lines)) <= 100
    assert 15 <= len(lines) <= 35


@pytest.mark.parametrize("reason", Reason)
def test_a_page_names_only_related_reasons_that_exist(reason: Reason) -> None:
    related = (_PAGES / f"{reason.value}.md").read_text(encoding="utf-8").rpartition("## Related")[2]
    named = set(re.findall(r"\b[A-Z][a-z]+[A-Z]\w+\b", re.sub(r"\([^)]*\)", "", related)))

    assert named
    assert named <= {other.value for other in Reason} - {reason.value}


def test_the_index_of_reasons_links_every_page() -> None:
    index = (ROOT / "docs/reasons.md").read_text(encoding="utf-8")

    for reason in Reason:
        assert f"[{reason.value}](../src/coterie/pages/{reason.value}.md)" in index


@pytest.mark.parametrize(
    ("document", "title", "spec"),
    [
        *(("workflow-spec.md", title, spec) for title, spec in _WORKFLOW_SECTIONS.items()),
        *(("pool-configuration.md", title, spec) for title, spec in _CONFIG_SECTIONS.items()),
        *(("pod-template.md", title, spec) for title, spec in _TEMPLATE_SECTIONS.items()),
        *(("cluster-topology.md", title, spec) for title, spec in _TOPOLOGY_SECTIONS.items()),
        *(("podcliqueset.md", title, spec) for title, spec in _SET_SECTIONS.items()),
        ("graph-deployment.md", "Components", graph_manifest.ComponentModel),
    ],
)
def test_a_section_lists_the_fields_of_its_model_and_no_others(
    document: str, title: str, spec: type[DocumentModel]
) -> None:
    text = (ROOT / "docs" / document).read_text(encoding="utf-8")

    assert _rows(_section(text, title)) == set(named_fields(spec))


def test_the_fields_of_both_versions_of_a_graph_deployment_are_documented() -> None:
    text = (ROOT / "docs/graph-deployment.md").read_text(encoding="utf-8")
    graph = {**named_fields(graph_manifest.BetaSpec), **named_fields(graph_manifest.AlphaSpec)}
    service, shared = set(named_fields(graph_manifest.AlphaService)), set(named_fields(graph_manifest.ComponentFields))

    assert _rows(_section(text, "The graph")) == set(graph)
    assert _rows(_section(text, "Services")) == service - shared
    assert all(f"`{field}`" in _section(text, "Services") for field in shared)


def test_every_model_has_a_section() -> None:
    documented = {*_WORKFLOW_SECTIONS.values(), *_CONFIG_SECTIONS.values()}
    there = {
        value
        for module in (model, config_model)
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, DocumentModel) and value is not DocumentModel
    }

    assert documented == there


def _commands() -> dict[str, typer.core.TyperCommand]:
    found: dict[str, typer.core.TyperCommand] = getattr(typer.main.get_command(app), "commands")  # noqa: B009 - typer hides the type of its groups
    return found


def test_the_reference_has_the_help_of_every_command() -> None:
    text = (ROOT / "docs/reference.md").read_text(encoding="utf-8")

    assert set(re.findall(r"^\$ coterie (\w+) --help$", text, re.MULTILINE)) == set(_commands())


@pytest.mark.parametrize("command", ["plan", "validate", "explain", "check", "map", "fit", "render"])
def test_the_options_of_a_command_are_documented_and_those_documented_exist(command: str) -> None:
    section = _section((ROOT / "docs/cli.md").read_text(encoding="utf-8"), f"coterie {command}")
    real = {option for parameter in _commands()[command].params for option in parameter.opts if option.startswith("--")}

    assert set(_OPTION.findall(section)) == real


def test_every_exit_code_is_documented() -> None:
    section = _section((ROOT / "docs/cli.md").read_text(encoding="utf-8"), "Exit codes")

    assert {int(code) for code in re.findall(r"^\| (\d+) \|", section, re.MULTILINE)} == {code.value for code in Exit}


def test_the_fields_of_a_cluster_file_are_documented() -> None:
    text = (ROOT / "docs/cluster-files.md").read_text(encoding="utf-8")

    for title, fields in (
        ("The file", cluster_file._TOP),
        ("Nodes", cluster_file._NODE),
        ("Fleet", {*cluster_file._FLEET} - {*cluster_file._NODE} | {"domains", "name"}),
        ("Pods", pods_in_use._POD),
    ):
        assert _rows(_section(text, title)) == set(fields)
