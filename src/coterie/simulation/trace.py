"""Traces of jobs read from CSV; the header determines the kind of trace."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from coterie.document.located import decode
from coterie.document.page import TextLimits
from coterie.errors import Fault, Notice, Place, SpecErrors, UsageError, did_you_mean

# Larger numbers are certainly errors; smaller ones add up exactly enough to be printed.
_MOST_SECONDS = 1e10
_MOST_GPUS = 1 << 20
_LIMITS = TextLimits(size=256 << 20)
# A trace of the wrong kind is wrong in every row: the first few faults are enough.
_ROW = "Fix the row, or remove it from the trace."
_SHOWN_FAULTS = 20
_LONGEST_FRAME = 200


@dataclass(frozen=True, slots=True)
class TraceJob:
    """One job: its GPUs, its submission time, and its duration once started."""

    name: str
    gpus: int
    submit_s: float
    duration_s: float


@dataclass(frozen=True, slots=True)
class TraceFormat:
    """A format of traces: its columns, its unit of time, and the name of its rows."""

    name: str
    columns: tuple[str, ...]
    units_per_s: int = 1
    job: str = ""


# Muri's form of Microsoft's Philly trace counts in milliseconds: its duration is iterations times milliseconds each.
PLAIN = TraceFormat("plain", ("gpus", "submit", "duration"), job="job")
PHILLY = TraceFormat("philly", ("num_gpu", "submit_time", "duration"), 1000, job="job_id")
OPENB = TraceFormat("openb", ("num_gpu", "creation_time", "deletion_time"), job="name")
UNTIMED = TraceFormat("openb-untimed", ("num_gpu", "gpu_milli"), job="name")
KINDS = (PLAIN, PHILLY, OPENB, UNTIMED)


@dataclass(frozen=True, slots=True)
class TraceTiming:
    """The times of a trace that has none: a fixed interval between jobs, and a fixed duration."""

    every_s: float
    lasting_s: float


@dataclass(frozen=True, slots=True)
class Trace:
    """Jobs by submission time, the first at time 0; equal times keep the order of the rows."""

    kind: str
    jobs: tuple[TraceJob, ...]
    notices: tuple[Notice, ...] = ()

    def first(self, count: int) -> Trace:
        """Return the trace of the first jobs only."""
        return Trace(self.kind, self.jobs[:count], self.notices)

    def faster(self, speed: float) -> Trace:
        """Return the trace with submission intervals divided by `speed` and unchanged durations."""
        jobs = tuple(TraceJob(job.name, job.gpus, job.submit_s / speed, job.duration_s) for job in self.jobs)
        return Trace(self.kind, jobs, self.notices)


@dataclass(frozen=True, slots=True)
class _TraceRow:
    line: int
    cells: Mapping[str, str]


def read_trace(data: bytes, file: str, pace: TraceTiming | None = None) -> Trace:
    """Return the trace in a file; raise `SpecErrors` with every fault. `pace` is for traces without times."""
    text = decode(data, file, _LIMITS)
    faults: list[Fault] = []
    lines = text.splitlines()
    try:
        header, rows = _table(text)
    except csv.Error as error:
        raise SpecErrors([Fault(f"this is not CSV text: {error}", hint=_known(), place=Place(file, 1))]) from None
    if not header:
        raise SpecErrors([Fault("the trace is empty", hint=_known(), place=Place(file, 1))])
    kind = _kind(header, file, lines)
    if kind is UNTIMED and pace is None:
        fault = Fault(
            "this trace does not say when its pods were created and deleted",
            hint="Give it times with --every SECONDS --lasting SECONDS, for example --every 30 --lasting 3600.",
            place=_place(file, lines, 1),
        )
        raise SpecErrors([fault])
    if kind is not UNTIMED and pace is not None:
        raise UsageError(
            f"{file} has times of its own", "--every and --lasting are for traces without times; leave them out."
        )
    if not rows:
        raise SpecErrors(
            [Fault("the trace has a header but no jobs", hint="Add a line for each job.", place=_place(file, lines, 1))]
        )
    jobs = [job for number, row in enumerate(rows) if (job := _job(kind, row, number, pace, file, lines, faults))]
    if faults:
        raise SpecErrors(_fewer(faults, file))
    return _sorted(kind, jobs, rows)


def _table(text: str) -> tuple[list[str], list[_TraceRow]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header: list[str] = []
    rows = []
    before = 0
    for cells in reader:
        line, before = before + 1, reader.line_num
        if not any(cell.strip() for cell in cells):
            continue
        if not header:
            header = [cell.strip() for cell in cells]
        else:
            rows.append(_TraceRow(line, dict(zip(header, (cell.strip() for cell in cells), strict=False))))
    return header, rows


def _kind(header: Sequence[str], file: str, lines: Sequence[str]) -> TraceFormat:
    for kind in KINDS:
        if set(kind.columns) <= set(header):
            return kind
    nearest = max(KINDS, key=lambda kind: len(set(kind.columns) & set(header)) / len(kind.columns))
    missing = [column for column in nearest.columns if column not in header]
    if len(missing) == len(nearest.columns):
        message = "these are not the columns of a known trace format"
    else:
        names = " and ".join(f'"{column}"' for column in missing)
        guess = did_you_mean(missing[0], [column for column in header if column not in nearest.columns])
        message = f"the trace has no column {names}. {guess}".strip()
    raise SpecErrors([Fault(message, hint=_known(), place=_place(file, lines, 1))])


def _known() -> str:
    return (
        "A trace is CSV with a header that has: gpus, submit, duration (seconds); num_gpu, submit_time, duration "
        "(milliseconds, Philly as Muri has it); or num_gpu, creation_time, deletion_time (seconds, openb)."
    )


def _job(
    kind: TraceFormat,
    row: _TraceRow,
    number: int,
    pace: TraceTiming | None,
    file: str,
    lines: Sequence[str],
    faults: list[Fault],
) -> TraceJob | None:
    """Return the job of a row; None, with its faults added, when the row is invalid."""
    found = {}
    before = len(faults)
    for column in kind.columns:
        text = row.cells.get(column, "")
        try:
            found[column] = _number(text, whole=column == kind.columns[0])
        except ValueError as error:
            shown = f'"{text}" is {error}' if text else "it is empty"
            place = _place(file, lines, row.line, row.cells, column)
            faults.append(Fault(f'column "{column}": {shown}', hint="Write a number.", place=place))
    if len(faults) > before:
        return None
    name = row.cells.get(kind.job) or str(number)
    gpus = int(found[kind.columns[0]])
    if gpus > _MOST_GPUS:
        message = f"{gpus:,} GPUs is more than any job can have"
        faults.append(Fault(message, hint=_ROW, place=_place(file, lines, row.line)))
        return None
    if pace is not None:
        return TraceJob(name, gpus, number * pace.every_s, pace.lasting_s)
    submit, last = (found[column] / kind.units_per_s for column in kind.columns[1:])
    duration = last - _started(row, submit) if kind is OPENB else last
    if duration < 0:
        faults.append(Fault("the pod is deleted before it starts", hint=_ROW, place=_place(file, lines, row.line)))
        return None
    if max(submit, duration) > _MOST_SECONDS:
        faults.append(Fault("a time is more than 300 years", hint=_ROW, place=_place(file, lines, row.line)))
        return None
    return TraceJob(name, gpus, submit, duration)


def _started(row: _TraceRow, created: float) -> float:
    """Return when a pod of an openb trace started to run: its scheduling time, where known."""
    try:
        return max(created, _number(row.cells.get("scheduled_time", ""), whole=False))
    except ValueError:
        return created


def _number(text: str, *, whole: bool) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError("not a number") from None
    if not math.isfinite(value) or "_" in text:
        raise ValueError("not a number")
    if value < 0:
        raise ValueError("negative")
    if whole and not value.is_integer():
        raise ValueError("not a whole number")
    return value


def _sorted(kind: TraceFormat, jobs: Sequence[TraceJob], rows: Sequence[_TraceRow]) -> Trace:
    held = sorted((job for job in jobs if job.gpus), key=lambda job: job.submit_s)
    start = held[0].submit_s if held else 0.0
    shifted = tuple(TraceJob(job.name, job.gpus, job.submit_s - start, job.duration_s) for job in held)
    return Trace(kind.name, shifted, tuple(_notices(kind, len(jobs) - len(held), rows)))


def _notices(kind: TraceFormat, without: int, rows: Sequence[_TraceRow]) -> Iterator[Notice]:
    if without:
        yield Notice("NoGpus", f"jobs that ask for no GPU are left out: {without:,} of {len(rows):,}")
    shared = sum(1 for row in rows if row.cells.get("gpu_milli", "") not in {"", "0", "1000"})
    if shared:
        yield Notice(
            "SharedGpus", f"pods that ask for part of a GPU are given a whole one: {shared:,} of {len(rows):,}"
        )
    if kind in {OPENB, UNTIMED}:
        yield Notice("GpusOnly", "processors and memory of the trace are not replayed, only GPUs")


def _place(
    file: str, lines: Sequence[str], line: int, cells: Mapping[str, str] | None = None, column: str | None = None
) -> Place:
    """Return a row's place, with the column of a cell where the row can be split at its commas."""
    text = lines[line - 1][:_LONGEST_FRAME] if line <= len(lines) else ""
    frame = ((line, text.replace("\t", " ")),)
    if cells is None or column is None or '"' in text or column not in cells:
        return Place(file, line, frame=frame)
    parts = text.split(",")[: list(cells).index(column) + 1]
    start = sum(len(part) + 1 for part in parts[:-1])
    indent = len(parts[-1]) - len(parts[-1].lstrip())
    return Place(file, line, start + indent + 1, max(1, len(parts[-1].strip())), frame)


def _fewer(faults: Sequence[Fault], file: str) -> list[Fault]:
    if len(faults) <= _SHOWN_FAULTS:
        return list(faults)
    rest = len(faults) - _SHOWN_FAULTS
    return [*faults[:_SHOWN_FAULTS], Fault(f"and {rest:,} more like these", hint=_ROW, place=Place(file))]
