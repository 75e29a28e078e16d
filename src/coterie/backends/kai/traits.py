"""Traits of KAI."""

from __future__ import annotations

from coterie.backends.base.traits import Forecast, Traits


def _forecast() -> Forecast:
    from coterie.backends.kai.forecast.notices import KaiForecast

    return KaiForecast()


TRAITS = Traits(
    "kai",
    title="KAI",
    pod_scheduler="kai-scheduler",
    chooses_nodes=True,
    own_queue=True,
    topology=True,
    hides_unlabelled=True,
    compute_domains=True,
    forecast=_forecast,
)
