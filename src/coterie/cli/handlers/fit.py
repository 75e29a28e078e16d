"""`coterie fit`: the largest gang of one task shape that each domain holds."""

from __future__ import annotations

from collections.abc import Iterator

from coterie.cli.inputs.options import ClusterOptions
from coterie.cli.inputs.source import notices_of, read_cluster_input, warn
from coterie.cli.output.formats import Output
from coterie.cli.output.screen import screen, show, show_data
from coterie.errors import UsageError
from coterie.placement.domain_fit import DomainRoom
from coterie.planning.fit import FitQuery, FitReport, answer, fit_json
from coterie.rendering.causes import counted
from coterie.rendering.text import Style, count, cut_start, share, table, visible, wrapped
from coterie.topology.abbreviations import Abbreviations
from coterie.topology.domains import Domains

_SHOWN = 40


def run(source: ClusterOptions, level: str | None, query: FitQuery, output: Output) -> None:
    """Print the largest gang that fits in each domain of a level."""
    query.requests()  # an invalid request is reported before any file is read
    world = read_cluster_input(source)
    if level is None:
        known = ", ".join(world.topology.names)
        hint = f"Add --level with one of: {known}." if known else "There are none; give some with --levels NAME=LABEL."
        raise UsageError("name the level that a gang is to share", hint)
    found = answer(query, level, world.pool, Domains.of(world.cluster, world.topology))
    match output:
        case Output.JSON | Output.YAML:
            show_data(fit_json(found), output)
        case Output.NAME:
            show("/".join(map(visible, room.domain)) for room in found.fit.rooms if room.now)
        case _:
            show(_lines(found, len(world.whole), screen(), wide=output is Output.WIDE))
    warn((*notices_of(world), *found.notices))


def _lines(found: FitReport, whole: int, style: Style, *, wide: bool) -> Iterator[str]:
    rooms, total, tasks = found.fit.rooms, found.fit.total, found.query.tasks
    short = Abbreviations() if wide else Abbreviations(*zip(*(room.domain for room in rooms), strict=True))
    shown = rooms if wide or len(rooms) <= _SHOWN else rooms[:_SHOWN]
    gangs = [f"GANGS OF {tasks}", "IF EMPTY"] if tasks else []
    more = ["NODES", "FREE GPUS"] if wide else []
    rows = [[found.level.upper(), "FITS NOW", "IF EMPTY", *gangs, *more]]
    most = 1 << 16 if wide else max(12, style.width - 40)
    for room in shown:
        name = cut_start(visible(short.domain(room.domain)), most, style.symbols.more)
        rows.append([name, *_cells(room, tasks, wide=wide)])
    if len(shown) < len(rooms):
        rest = rooms[len(shown) :]
        rows.append([f"{count(len(rest), 'other')}", f"<= {rest[0].now}", "", *["" for _ in (*gangs, *more)]])
    sums = [str(number) for number in found.fit.gangs(tasks)] if tasks else []
    extra = [f"{total.nodes:,}", f"{total.free_gpus:,}"] if wide else []
    rows.append(["in all", f"{total.now:,}", f"{total.empty:,}", *sums, *extra])
    nodes = share(total.nodes + found.fit.outside.nodes, whole, "node")
    yield f"tasks of {visible(found.query.words())}   pool {visible(found.pool)}, {nodes}"
    yield from (f"  {line}" for line in table(rows, numbers=frozenset(range(1, len(rows[0])))))
    yield ""
    yield from wrapped(_verdict(found, short), style.width)
    yield from short.note()


def _cells(room: DomainRoom, tasks: int | None, *, wide: bool) -> Iterator[str]:
    yield f"{room.now:,}"
    yield f"{room.empty:,}"
    if tasks:
        yield f"{room.gangs(tasks):,}"
        yield f"{room.empty_gangs(tasks):,}"
    if wide:
        yield f"{room.nodes:,}"
        yield f"{room.free_gpus:,}"


def _verdict(found: FitReport, short: Abbreviations) -> str:
    """Return the answer as a sentence."""
    level, best = found.level, found.fit.rooms[0]
    largest = max(room.empty for room in found.fit.rooms)
    tasks = found.query.tasks
    why = visible(short.sentence(counted(found.tally))) if found.tally else ""
    if tasks:
        now, empty = found.fit.gangs(tasks)
        gangs = f"{count(now, 'gang')} of {count(tasks, 'task')}, each in one {level}"
        return f"{gangs}, fit now; {empty:,} on the empty cluster." + (f" No task fits: {why}." if why else "")
    if not largest:
        return f"Such a task fits no {level}, not even an empty one: {why}."
    if not best.now:
        size = f"the largest gang in one {level} has {count(largest, 'task')}"
        return f"No such task fits now: {why}. On the empty cluster {size}."
    where = visible(short.domain(best.domain))
    size = f"has {count(best.now, 'task')} now, in {where}"
    return f"The largest gang in one {level} {size}; on the empty cluster, {largest:,}."
