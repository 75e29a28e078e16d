"""`coterie check`: whether node labels form the levels, and whether the pool matches the cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import typer

from coterie.cli.exit_codes import Exit
from coterie.cli.inputs.options import ClusterOptions
from coterie.cli.inputs.source import ClusterInput, read_cluster_input, warn
from coterie.cli.output.formats import Output
from coterie.cli.output.screen import screen, show, show_data
from coterie.errors import UsageError
from coterie.inspection.fleet import Fleet
from coterie.inspection.labels import check_json, check_pool
from coterie.rendering.text import Ink, Style, count, paint, share, table, visible, wrapped
from coterie.topology.abbreviations import Abbreviations
from coterie.topology.check import LabelFinding
from coterie.topology.domains import Domains
from coterie.topology.ranges import fold

# As for a plan: 6 works in principle but hinders something, 7 cannot work.
_CODES = {"info": Exit.DONE, "warning": Exit.MUST_WAIT, "error": Exit.NEVER_FITS}
_COLOURS = {"info": "cyan", "warning": "yellow", "error": "red"}


def run(source: ClusterOptions, output: Output) -> None:
    """Check the nodes and the pool of a call, print the findings, and exit by the worst of them."""
    world = read_cluster_input(source)
    if not world.topology.levels and len(world.cluster):
        raise UsageError(
            "there are no levels to check, and no node has a label that is known to be one",
            "Name the levels, coarsest first: --levels zone=LABEL,rack=LABEL",
        )
    findings = (*check_pool(world.whole, world.pool, world.config), *world.drift)
    if output in {Output.JSON, Output.YAML}:
        show_data(check_json(findings, world.pool, world.cluster, world.notices), output)
    elif output is Output.NAME:
        show("/".join(filter(None, (finding.level, finding.code))) for finding in findings)
    else:
        show(_lines(world, findings, screen(), wide=output is Output.WIDE))
    warn(world.notices)
    raise typer.Exit(max((_CODES[finding.severity] for finding in findings), default=Exit.DONE))


def _lines(world: ClusterInput, findings: Sequence[LabelFinding], style: Style, *, wide: bool) -> Iterator[str]:
    nodes = share(len(world.cluster), len(world.whole), "node")
    fleet = Fleet.of(world.cluster)
    yield f"pool {visible(world.pool.name)}, {nodes}{_sorts(fleet)}"
    for state, found in (("not ready", fleet.not_ready), ("cordoned", fleet.cordoned)):
        if found:
            yield from wrapped(f"{len(found):,} {state}: {visible(fold(found))}", style.width, "    ", "  ")
    yield from (f"  {line}" for line in table(list(_levels(world)), numbers=frozenset({1, 2, 3})))
    yield ""
    short = Abbreviations() if wide else _names(world)
    for finding in findings:
        yield from _finding(finding, short, style, wide=wide)
    if short.used:
        yield ""
        yield from short.note()
    counted = Counter(finding.severity for finding in findings)
    if not findings:
        yield "No problems found: the labels match the levels."
        return
    yield ""
    errors, warnings = count(counted["error"], "error"), count(counted["warning"], "warning")
    yield f"{errors}, {warnings}, {count(counted['info'], 'remark')}."


def _sorts(fleet: Fleet) -> str:
    """Return the number of nodes with and without GPUs."""
    without = fleet.nodes - fleet.with_gpus
    if not fleet.with_gpus:
        return ": none with GPUs" if without else ""
    return f": {fleet.with_gpus:,} with GPUs, {without:,} without" if without else ", all with GPUs"


def _levels(world: ClusterInput) -> Iterator[tuple[str, ...]]:
    domains = Domains.of(world.cluster, world.topology)
    yield ("LEVEL", "DOMAINS", "NODES IN EACH", "NODES IN NONE", "LABEL")
    for level, tier in zip(world.topology.levels, domains.tiers, strict=True):
        sizes = tier.end - tier.start
        least, most = int(sizes.min(initial=len(domains))), int(sizes.max(initial=0))
        each = "-" if not most else str(least) if least == most else f"{least}-{most}"
        yield level.name, str(len(tier)), each, str(int((tier.of < 0).sum())), visible(level.label)


def _names(world: ClusterInput) -> Abbreviations:
    """Return the short forms of nodes, and of all values of the levels' labels, since a faulty one may be no domain."""
    values = (world.whole.column(level.label).values for level in world.topology.levels)
    return Abbreviations(*values, world.whole.names)


def _finding(finding: LabelFinding, short: Abbreviations, style: Style, *, wide: bool) -> Iterator[str]:
    about = f" {finding.level}" if finding.level else ""
    tag = f"{finding.severity}[{finding.code}]"
    first, *rest = wrapped(f"{tag}{about}: {visible(short.sentence(finding.message))}", style.width, "  ")
    yield paint([Ink(tag, _COLOURS[finding.severity])], style) + first.removeprefix(tag)
    yield from rest
    if finding.hint:
        yield from wrapped(visible(short.sentence(finding.hint)), style.width, "  ", "  ")
    if wide and finding.nodes:
        yield f"  nodes: {visible(fold(finding.nodes))}"
