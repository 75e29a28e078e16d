"""The follower of a workflow in this process until it ends; Ctrl-C asks or stops it, and then kills it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any

import typer

from coterie.cli.follow.follow import follow
from coterie.cli.follow.log_lines import Printer
from coterie.cli.inputs.prompt import choose, user_present
from coterie.cli.output.formats import safe
from coterie.errors import Conflict
from coterie.service.service import Service

Json = dict[str, Any]

_TICK_S = 0.5


class Terminated(KeyboardInterrupt):
    """An interrupt without a user who could be asked about it."""


class InterruptChoice(Enum):
    """The choices of an interrupted user."""

    STOP = "stop"
    DETACH = "detach"
    GO_ON = "go on"


@dataclass(frozen=True, slots=True)
class RunEnd:
    """The outcome: the last view, whether it was interrupted, and why it could not continue."""

    view: Json
    interrupted: bool = False
    stuck: Json | None = None


class LocalRunFollower:
    """The follower of one workflow.

    `alone` means that nothing else runs in the service, so no capacity will become free. `resume` is the command that
    continues the workflow if it is left; None where it would be lost.
    """

    def __init__(
        self, service: Service, ident: str, printer: Printer | None, *, alone: bool, resume: str | None, quiet: bool
    ) -> None:
        self._service, self._ident = service, ident
        self._alone, self._resume = alone, resume
        self._printer, self._quiet = printer, quiet
        self._interrupts = 0
        self._seen = 0
        self._stuck: Json | None = None

    def view(self, ident: str) -> Json:
        """Return the current view of the workflow."""
        return self._service.workflow(ident)

    def news(self, ident: str) -> Iterator[list[Json]]:
        """Yield events as they happen, and an empty list at intervals, until the workflow is finished."""
        while True:
            newest = self._service.last_event()
            finished = self._service.workflow(ident)["finished"]
            events = self._service.events(self._seen, ident)
            self._seen = events[-1]["seq"] if events else self._seen
            if self._printer:
                self._printer.print_new()
            yield events
            if finished:
                return
            self._service.changed(newest, _TICK_S)

    def keep(self) -> RunEnd:
        """Follow the workflow to its end, or until it is left alone."""
        while True:
            try:
                view = follow(
                    self, self._ident, quiet=self._quiet, plain=self._printer is not None, until=self._hopeless
                )
                if view["finished"]:
                    return RunEnd(view, interrupted=self._interrupts > 0, stuck=self._stuck)
                self._cancel("nothing can make room for it")
                self._quiet = True
            except KeyboardInterrupt as interrupt:
                if self._interrupted(interrupt) is InterruptChoice.DETACH:
                    return RunEnd(self._service.workflow(self._ident), interrupted=True)

    def _interrupted(self, interrupt: KeyboardInterrupt) -> InterruptChoice:
        while True:
            self._interrupts += 1
            try:
                return self._answered(interrupt)
            except KeyboardInterrupt as another:  # while the first was being answered
                interrupt = another

    def _answered(self, interrupt: KeyboardInterrupt) -> InterruptChoice:
        asked = self._interrupts == 1 and not isinstance(interrupt, Terminated)
        choice = self._asked() if asked else InterruptChoice.STOP
        match choice:
            case InterruptChoice.GO_ON:
                self._interrupts = 0
            case InterruptChoice.DETACH:
                self._say(f"it keeps running; resume with: {self._resume}")
            case InterruptChoice.STOP if self._interrupts == 1:
                self._say("stopping; Ctrl-C again kills its tasks")
                self._cancel("interrupted")
            case InterruptChoice.STOP:
                self._say("killing its tasks")
                self._cancel("interrupted", force=True)
        return choice

    def _asked(self) -> InterruptChoice:
        """Ask a user at a terminal what to do; without a terminal there is no question.

        The default needs no undoing: the workflow continues, also when it has ended meanwhile.
        """
        if not user_present():
            return InterruptChoice.STOP
        choices = {"s": InterruptChoice.STOP, "c": InterruptChoice.GO_ON}
        words = "[s]top it, [C]ontinue"
        if self._resume is not None:
            choices["d"] = InterruptChoice.DETACH
            words = "[s]top it, [d]etach and leave its tasks running, [C]ontinue"
        answer = choose(f"{self._ident}: {words}?", choices, "c", lambda: bool(self.view(self._ident)["finished"]))
        return InterruptChoice.GO_ON if answer is None else answer

    def _cancel(self, message: str, *, force: bool = False) -> None:
        with suppress(Conflict):  # it ended by itself meanwhile
            self._service.cancel(self._ident, message, force=force)

    def _say(self, words: str) -> None:
        typer.echo(safe(f"{self._ident}: {words}"), err=True)

    def _hopeless(self, view: Json) -> bool:
        """Return whether the workflow waits for capacity that will never become free."""
        if self._interrupts == 0 and self._stuck is None:
            self._stuck = _stuck(self._service, view, alone=self._alone)
            return self._stuck is not None
        return False


def _stuck(service: Service, view: Json, *, alone: bool) -> Json | None:
    """Return why a workflow waits, if it holds nothing that it could release itself, and waiting will not help."""
    open_groups = [group for group in view["groups"] if group["ended"] is None]
    holds = any(task["node"] and task["ended"] is None for group in open_groups for task in group["tasks"])
    if (
        holds
        or not any(group["waiting"] for group in open_groups)
        or any(group["cleaning"] for group in view["groups"])
    ):
        return None
    answer = service.why(view["id"])
    verdicts = {group["verdict"] for group in answer["groups"]}
    return answer if verdicts and verdicts <= ({"waiting", "impossible"} if alone else {"impossible"}) else None
