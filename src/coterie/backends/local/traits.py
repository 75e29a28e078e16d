"""The traits of the embedded scheduler: tasks are processes of this machine, on nodes that the engine chooses."""

from __future__ import annotations

from typing import Any

from coterie.backends.base.driver import Driver, OutputReader, WorkflowTexts
from coterie.backends.base.settings import DriverSettings
from coterie.backends.base.submission import SubmissionCheck
from coterie.backends.base.traits import Traits


def _most_tasks(processes: int) -> int:
    from coterie.backends.local.machine.open_files import at_a_time

    return at_a_time(processes)


def _submission() -> SubmissionCheck[Any, Any]:
    from coterie.backends.local.submission import LocalCheck

    return LocalCheck()


def _driver(settings: DriverSettings, texts: WorkflowTexts) -> Driver:
    from coterie.backends.local.driver import LocalDriver

    return LocalDriver(settings, texts)


def _output(settings: DriverSettings) -> OutputReader:
    from coterie.backends.local.output import LocalOutput

    return LocalOutput(settings)


TRAITS = Traits(
    "local",
    title="the embedded scheduler",
    embedded=True,
    topology=True,
    compute_domains=True,
    most_tasks=_most_tasks,
    submission=_submission,
    driver=_driver,
    output=_output,
)
