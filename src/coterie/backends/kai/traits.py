"""Traits of KAI."""

from __future__ import annotations

from typing import Any

from coterie.backends.base.driver import Driver, OutputReader, WorkflowTexts
from coterie.backends.base.settings import DriverSettings
from coterie.backends.base.submission import SubmissionCheck
from coterie.backends.base.topology_resource import TopologyResource
from coterie.backends.base.traits import Forecast, RefusalKind, Traits


def _forecast() -> Forecast:
    from coterie.backends.kai.forecast.notices import KaiForecast

    return KaiForecast()


def _refusal_kind(words: str) -> RefusalKind | None:
    from coterie.backends.kai.refusal_kind import kai_refusal_kind

    return kai_refusal_kind(words)


def _submission() -> SubmissionCheck[Any, Any]:
    from coterie.backends.kai.submission import KaiCheck

    return KaiCheck()


def _driver(settings: DriverSettings, texts: WorkflowTexts) -> Driver:
    from coterie.backends.kai.driver.driver import KaiDriver

    return KaiDriver(settings, texts)


def _output(settings: DriverSettings) -> OutputReader:
    from coterie.backends.kai.driver.logs import KaiOutput

    return KaiOutput(settings)


def _topology_resource() -> TopologyResource:
    from coterie.backends.kai.topology_resource import KaiTopologyResource

    return KaiTopologyResource()


TRAITS = Traits(
    "kai",
    title="KAI",
    pod_scheduler="kai-scheduler",
    kubernetes=True,
    chooses_nodes=True,
    own_queue=True,
    topology=True,
    hides_unlabelled=True,
    compute_domains=True,
    topology_resource=_topology_resource,
    forecast=_forecast,
    forecast_code="KaiWouldWait",
    refusal_kind=_refusal_kind,
    submission=_submission,
    driver=_driver,
    output=_output,
)
