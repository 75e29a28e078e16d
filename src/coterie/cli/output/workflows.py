"""Workflows as lines of text: lists, one in full, and the nodes of its tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from coterie.cli.output.grid import fitted, painted
from coterie.cli.output.short_names import short_names
from coterie.cli.output.times import between
from coterie.rendering.text import Ink, Style, count, cut, legend, paint, visible
from coterie.topology.abbreviations import Abbreviations
from coterie.topology.display_names import group_name
from coterie.topology.ranges import fold

Json = dict[str, Any]

_MARKS = {"held": ("+", "green"), "missed": ("~", "yellow"), "violated": ("x", "red"), "unobservable": ("?", "yellow")}
_SHOUTED = {"violated": "VIOLATED"}
# The columns that a narrow screen omits, the first of them first.
_SPARE = ("RAN", "POOL", "GPUS", "AGE", "TASKS")
_SPARE_OF_TASKS = ("DEVICES", "RAN", "EXIT", "DOMAIN")


def status_colour(status: str) -> str:
    """Return the colour of a status."""
    if status.startswith("FAILED"):
        return "red"
    return {"COMPLETED": "green", "RUNNING": "cyan"}.get(status, "yellow")


def list_lines(
    rows: Sequence[Json],
    style: Style,
    now: float,
    *,
    expected: Mapping[str, str] | None = None,
    marks: Mapping[str, str] | None = None,
) -> Iterator[str]:
    """Yield a list of workflows: the nodes of running ones, and the reason of waiting ones, in one word.

    The list is wide if it has the times within which workflows are `expected` to start, by id, as far as they are
    known. With `marks`, by id, the list has a first column for them.
    """
    wide = expected is not None
    short = Abbreviations(() if wide else {node for row in rows for node in row["nodes"]})
    if not rows:
        yield "No workflows found."
        return
    names = ["ID", "STATUS", "POOL", "TASKS", "GPUS", "AGE", "RAN"]
    more = ["PRIORITY", "POS", "ETA", "OWNER", "LABELS"] if wide else []
    table = [[Ink(name) for name in (*names, *more, "WHERE/WHY")]]
    for row in rows:
        cells = [
            Ink(visible(row["id"])),
            Ink(row["status"], status_colour(row["status"])),
            Ink(visible(row["pool"])),
            Ink(_tasks(row)),
            Ink(str(row["gpus"])),
            Ink(between(row["submitted"], None, now)),
            Ink(between(row["started"], row["ended"], now)),
        ]
        if expected is not None:
            labels = ",".join(f"{key}={value}" for key, value in row["labels"].items())
            position = row.get("position")
            start = f"<{expected[row['id']]}" if row["id"] in expected else "-"
            cells += [Ink(row["priority"]), Ink("-" if position is None else str(position)), Ink(start)]
            cells += [Ink(visible(row["owner"])), Ink(visible(labels) or "-")]
        table.append([*cells, Ink(visible(_where_or_why(row, short, wide=wide)))])
    shown = table if wide else fitted(table, style, _SPARE)
    if marks is not None:
        heads = [Ink(" "), *(Ink(marks.get(row["id"], " "), "yellow") for row in rows)]
        shown = [[head, *row] for head, row in zip(heads, shown, strict=True)]
    yield from painted(shown, style, whole=wide)
    yield from short.note()


def _tasks(row: Json) -> str:
    """Return the state of a workflow's tasks, in the most informative word."""
    tasks = row["tasks"]
    total = tasks["total"]
    failed = "canceled" if row["status"] == "FAILED_CANCELED" else "failed"
    for word, name in (("failed", failed), ("completed", "done"), ("running", "run")):
        if number := tasks[word]:
            return f"{number} {name}" if number == total else f"{number}/{total} {name}"
    return str(total)


def _where_or_why(row: Json, short: Abbreviations, *, wide: bool) -> str:
    waiting = row["waiting"]
    if waiting:
        reason = f"never ({waiting['reason']})" if waiting.get("never") else str(waiting["reason"])
        return f"{reason}: {waiting['message']}" if wide else reason
    return str(row["message"] or fold(short.names(row["nodes"])) or ("cleaning up" if row["cleaning"] else ""))


def workflow_lines(
    view: Json, style: Style, now: float, *, wide: bool = False, most: int | None = None
) -> Iterator[str]:
    """Yield a workflow with its groups and tasks; beyond `most` lines, tasks are only counted."""
    tasks = [task for group in view["groups"] for task in group["tasks"]]
    short = short_names(view["groups"], wide=wide)
    yield _title(view, style, now)
    if view["message"]:
        yield cut(f"  {visible(view['message'])}", style.width if not wide else 1 << 16, style.symbols.more)
    yield from (visible(f"  changed: {each}") for each in view.get("changes", ()))
    folded = most is not None and len(tasks) + len(view["groups"]) + 4 > most
    rows = [[Ink(name) for name in ("NAME", "STATUS", "NODE", "DOMAIN", "DEVICES", "EXIT", "RAN", "")]]
    for group in view["groups"]:
        rows.append(_group_row(group, short, now, folded=folded))
        rows += [] if folded else [_task_row(task, short, now) for task in group["tasks"]]
    shown = rows if wide else fitted(rows, style, _SPARE_OF_TASKS, indent="  ")
    yield from painted(shown, style, indent="  ", whole=wide)
    if most is None:
        yield from short.note()
    if wide:
        yield from _past(view)
        yield from (visible(f"  output: {task['name']} {task['output']}") for task in tasks if task.get("output"))


def _title(view: Json, style: Style, now: float) -> str:
    tasks, gpus = view["tasks"]["total"], view["gpus"]
    asked = count(tasks, "task") + (f", {count(gpus, 'GPU')}" if gpus else "")
    ran = between(view["started"], view["ended"], now) if view["started"] else ""
    spent = f"ran {ran}" if ran else f"queued {between(view['submitted'], view['ended'], now)}"
    tail = f"pool {view['pool']}   {asked}   {spent}"
    tail += "   cleaning up" if view["cleaning"] and view["ended"] else ""
    head = Ink(visible(f"{view['id']}   "))
    return paint([head, Ink(view["status"], status_colour(view["status"])), Ink(visible(f"   {tail}"))], style)


def _group_row(group: Json, short: Abbreviations, now: float, *, folded: bool) -> list[Ink]:
    counted = Counter(task["status"] for task in group["tasks"])
    said = ", ".join(f"{number} {status}" for status, number in counted.items()) if folded else ""
    if waiting := group["waiting"]:
        reason = f"never ({waiting['reason']})" if waiting.get("never") else waiting["reason"]
        said = f"{reason}: {waiting['message']}"
    elif group["message"]:
        said = group["message"]
    elif not group["started"] and group["needs"] and not group["ended"]:
        said = f"after {', '.join(group['needs'])}"
    nodes = fold(short.names(task["node"] for task in group["tasks"] if task["node"])) if folded else ""
    return [
        Ink(visible(group["name"])),
        Ink(group["status"], status_colour(group["status"])),
        Ink(cut(visible(nodes), 40)),
        Ink(""),
        Ink(""),
        Ink(""),
        Ink(between(group["started"], group["ended"], now)),
        Ink(visible(said)),
    ]


def _task_row(task: Json, short: Abbreviations, now: float) -> list[Ink]:
    again = f"attempt {task['attempt']}" if task["attempt"] > 1 else ""
    said = "; ".join(filter(None, (again, task["message"])))
    return [
        Ink(f"  {visible(task['name'])}{' *' if task['lead'] else ''}"),
        Ink(task["status"], status_colour(task["status"])),
        Ink(visible(short.name(task["node"] or "-"))),
        Ink(visible(short.domain(list(task["domains"].values())) or "-")),
        Ink(fold(map(str, task["gpus"])).strip("[]") or "-"),
        Ink("-" if task["exit_code"] is None else str(task["exit_code"])),
        Ink(between(task["started"], task["ended"], now)),
        Ink(visible(said)),
    ]


def _past(view: Json) -> Iterator[str]:
    for group in view["groups"]:
        for task in group["tasks"]:
            for old in task["past"]:
                code = "" if old["exit_code"] is None else f", exit code {old['exit_code']}"
                where = f" on {old['node']}" if old["node"] else ""
                said = f": {old['message']}" if old["message"] else ""
                yield visible(f"  earlier: {task['name']} attempt {old['attempt']} {old['status']}{where}{code}{said}")


def audit_lines(placement: Json, style: Style, *, wide: bool = False) -> Iterator[str]:
    """Yield the constraints of each group with their outcomes, and a total; `wide` shows names in full."""
    short = short_names(placement["groups"], wide=wide)
    for group in placement["groups"]:
        yield visible(f"{group['name']}   {fold(short.names(task['node'] for task in group['tasks'])) or 'not placed'}")
        rows = [_constraint(one, short) for one in group["constraints"]]
        yield from painted(rows, style, indent="  ")
    yield from short.note()
    summary = placement["summary"]
    if not any(summary.values()):
        return
    total = count(sum(summary.values()), "constraint")
    yield legend((_MARKS[word][0], _SHOUTED.get(word, word)) for word, number in summary.items() if number)
    yield f"{total}: " + ", ".join(f"{number} {_SHOUTED.get(word, word)}" for word, number in summary.items()) + "."


def _constraint(one: Json, short: Abbreviations) -> list[Ink]:
    outcome = str(one["outcome"])
    mark, colour = _MARKS[outcome]
    depth = "  " * (len(one["path"]) - 1)
    domains = ", ".join(short.domain(domain) for domain in one["domains"])
    why = short.sentence(one["why"])
    said = domains if outcome == "held" else f"{domains} ({why})" if domains else why
    return [
        Ink(mark, colour),
        Ink(visible(depth + group_name(one["path"]))),
        Ink(one["type"]),
        Ink(_SHOUTED.get(outcome, outcome)),
        Ink(visible(said)),
    ]


def warnings(view: Json, *, wide: bool = False, images: bool = False) -> Iterable[str]:
    """Yield the warnings of a workflow or a pool for standard error.

    That images are not used is reported when a workflow is submitted, with `images`, and not each time it is shown.
    """
    for one in view["warnings"]:
        # Remarks need no action, so they are only shown with full details.
        about_images = one["code"] == "FieldIgnored" and one.get("field") == "image"
        if ((about_images and not images) or one.get("severity") == "info") and not wide:
            continue
        line = f" (line {one['line']})" if one.get("line") else ""
        word = "note" if one.get("severity") == "info" else "warning"
        yield f"{word}[{one['code']}]: {one['message']}{line}"
