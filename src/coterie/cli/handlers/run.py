"""`coterie run`: a service in this process, for one workflow, from its submission to its end."""

from __future__ import annotations

import os
import select
import shlex
import signal
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import typer

from coterie.backends.local.container_paths import check_root
from coterie.backends.local.machine.open_files import raise_limit
from coterie.cli.commands.plan import PlanOptions
from coterie.cli.commands.run import RunOptions
from coterie.cli.commands.serve import ServeOptions
from coterie.cli.exit_codes import Exit
from coterie.cli.follow.local_run import LocalRunFollower, RunEnd, Terminated
from coterie.cli.follow.log_lines import Printer, pieces_of, print_last_lines
from coterie.cli.inputs.options import ClusterOptions
from coterie.cli.inputs.parameters import command_words
from coterie.cli.inputs.service_options import StorageOptions
from coterie.cli.inputs.submission import WorkflowInput, prepare
from coterie.cli.inputs.temporary_folder import temporary_folder
from coterie.cli.output.errors import fail
from coterie.cli.output.final_map import where_it_ran
from coterie.cli.output.formats import Output, safe
from coterie.cli.output.outcome import result_of
from coterie.cli.output.refusals import why_lines
from coterie.cli.output.screen import screen, show, show_data
from coterie.cli.output.times import between
from coterie.cli.output.workflows import audit_lines, warnings
from coterie.errors import CoterieError, Unavailable
from coterie.rendering.terminal import map_lines
from coterie.service.clock import SteadyClock
from coterie.service.service import Service
from coterie.service.settings import Settings, Submission

Json = dict[str, Any]

# How long to wait for tasks that were told to stop at once, when nothing else is left to do.
_LAST_WAIT_S = 10.0
_TICK_S = 0.05
# How long a terminal may take no output when the run is to end.
_FULL_MS = 2000
# The signal that interrupts the system calls of other threads, and has no other meaning.
_WAKE = signal.SIGURG
# The messages of a shell, and of a task's starter, for a missing command.
_NO_COMMAND = 127


def run(options: RunOptions) -> None:
    """Run a workflow to its end, print its placement, and exit with its result."""
    prepared = prepare(WorkflowInput(options.file, options.source, options.template, what_if=options.what_if))
    raise_limit()
    with _interruptible(), _folder(options.state) as folder:
        store = str(folder / "coterie.db")
        settings = Settings(
            store, folder, prepared.config, prepared.given, processes=options.processes, now=SteadyClock(folder)
        )
        with Service(settings) as service:
            _lead(service, folder)
            code = _submitted(options, service, prepared.submission)
    raise typer.Exit(code)


def _submitted(options: RunOptions, service: Service, submission: Submission) -> int:
    view = service.submit(submission, force=True)  # a workflow that can never run is reported below, with its remedies
    for line in () if options.quiet else view["changes"]:
        typer.echo(safe(f"changed: {line}"), err=True)
    for line in () if options.quiet else warnings(view, wide=options.output is Output.WIDE, images=True):
        typer.echo(safe(line), err=True)
    with ExitStack() as stack:
        if options.state is None:
            stack.callback(_nothing_left, service, view["id"])
        printer = Printer(service, view["id"]) if options.logs else None
        resume = _resume(options.source, options.state) if options.state else None
        alone = options.state is None
        end = LocalRunFollower(service, view["id"], printer, alone=alone, resume=resume, quiet=options.quiet).keep()
        if printer:
            printer.print_new()
        return _finish(options, service, end) if end.view["finished"] else Exit.INTERRUPTED


def _resume(source: ClusterOptions, state: str) -> str | None:
    """Return the command line of a service that continues what this one leaves; None where it would lack the nodes."""
    if source.cluster or source.levels or source.topology:
        return None
    return shlex.join(command_words("serve", ServeOptions(config=source.config, storage=StorageOptions(state))))


def _finish(options: RunOptions, service: Service, end: RunEnd) -> int:
    """Print the outcome of a workflow, and return the exit code."""
    view = end.view
    _print_result(options, service, view)
    if end.stuck is not None:
        return _say_stuck(end.stuck, _plan_call(options))
    took = between(view["submitted"], view["ended"], time.time())
    result = result_of(view)
    if result:
        print_last_lines(view, lambda task: pieces_of(service, view["id"], task))
        why = f": {view['message']}" if view["message"] else ""
        fail(f"{view['id']} ended as {view['status']} after {took}{why}", _no_image(view))
    elif not options.quiet:
        typer.echo(safe(f"{view['id']} {view['status']} after {took}"), err=True)
    return Exit.INTERRUPTED if end.interrupted else result


def _no_image(view: Json) -> str:
    """Return a hint about commands that were not found, which may exist in the task's image."""
    codes = {task["exit_code"] for group in view["groups"] for task in group["tasks"]}
    return "Images are not used here: install the command on this machine." if _NO_COMMAND in codes else ""


def _plan_call(options: RunOptions) -> str:
    """Return the `coterie plan` command for the same workflow on the same nodes."""
    plan = PlanOptions(files=(options.file,), source=options.source, template=options.template, what_if=options.what_if)
    return shlex.join(command_words("plan", plan))


def _say_stuck(why: Json, plan: str) -> int:
    groups = [{**group, "waiting": None, "position": None} for group in why["groups"]]
    typer.echo("\n".join(why_lines({**why, "groups": groups}, screen(), time.time(), plan=plan)), err=True)
    never = any(group["verdict"] == "impossible" for group in groups)
    ways = any(group["refusal"] and group["refusal"]["ways_out"] for group in groups)
    change = "Add the option of a way out to the call, or run it on another cluster."
    hint = change if ways else "Run it on another cluster." if never else "Try it when there is room."
    wait = "would wait forever: nothing else runs here that could end and make room"
    fail(f"{why['id']} {'can never run here' if never else wait}", hint)
    return Exit.NEVER_FITS if never else Exit.MUST_WAIT


def _print_result(options: RunOptions, service: Service, view: Json) -> None:
    placement = service.placement(view["id"])
    match options.output:
        case Output.JSON | Output.YAML:
            show_data({"version": 1, "workflow": view, "placement": placement}, options.output)
        case Output.NAME:
            show([safe(view["id"])])
        case _ if any(group["tasks"] for group in placement["groups"]):
            style = screen()
            scene = where_it_ran(service.scene(view["pool"]), placement)
            show(map_lines(scene, style, every=options.output is Output.WIDE))
            show(["", *audit_lines(placement, style, wide=options.output is Output.WIDE)])


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let a termination signal end a run in the same order as Ctrl-C, so that nothing is left behind.

    So does a terminal that disappears, unless the caller wants the run to outlive it, as `nohup` does.
    """
    before = {
        signal.SIGTERM: signal.signal(signal.SIGTERM, _terminate),
        _WAKE: signal.signal(_WAKE, lambda _number, _frame: None),
    }
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        before[signal.SIGHUP] = signal.signal(signal.SIGHUP, _terminate)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _terminate(number: int, _frame: FrameType | None) -> None:
    if number == signal.SIGHUP:
        # The shell and the kernel both send it, which does not count as a second request. And there is no reader any
        # more.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        _leave_terminal()
    elif not _takes_output():
        _leave_terminal()
    raise Terminated


def _takes_output() -> bool:
    """Return whether terminals take output now or soon: one that is full or halted would keep the run from ending."""
    for handle in (1, 2):
        if os.isatty(handle):
            room = select.poll()
            room.register(handle, select.POLLOUT)
            if not room.poll(_FULL_MS):
                return False
    return True


def _leave_terminal() -> None:
    """Detach from a terminal that is gone, where any write would fail, or takes nothing, where it would not end."""
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for handle in (0, 1, 2):
        with suppress(OSError):
            if stat.S_ISCHR(os.fstat(handle).st_mode):
                os.dup2(nothing, handle)
    os.close(nothing)
    # A thread that waits in a write begins it anew after a signal, and then writes into nothing.
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and thread.ident is not None:
            with suppress(ProcessLookupError):
                signal.pthread_kill(thread.ident, _WAKE)


@contextmanager
def _folder(state: str | None) -> Iterator[Path]:
    """Yield the folder of the service: the named one, or a temporary one."""
    if state is not None:
        folder = Path(state).resolve()
        check_root(folder)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        yield folder
        return
    with temporary_folder() as made:
        yield made


def _lead(service: Service, folder: Path) -> None:
    """Wait until this process drives the workflows of its folder; another process that does keeps the lease."""
    until = time.monotonic() + service.settings.lease_s + 5
    while not service.health()["leader"]:
        if time.monotonic() > until:
            hint = "Submit the workflow to that service with `coterie submit`, or choose another --state."
            raise Unavailable(f"another service works in {folder}", hint)
        time.sleep(_TICK_S)


def _nothing_left(service: Service, ident: str) -> None:
    """Ensure that no task outlives the folder it runs in, whatever ended the run."""
    try:
        if service.workflow(ident)["finished"]:
            return
        service.cancel(ident, "its run ended", force=True)
        service.wait(ident, timeout_s=_LAST_WAIT_S)
    except CoterieError as error:
        fail(f"tasks of {ident} may still run: {error}", error.hint)
