"""The treatment of gangs by the real KAI in the lab."""

from __future__ import annotations

from typing import Any

from lab import Lab
from tests.lab.gangs import CLIQUE, ZONE, phases, places, prepare, two_models, two_zones


def test_two_models_get_a_clique_each_in_one_zone(lab: Lab) -> None:
    prepare(lab, two_zones())
    lab.apply(two_models("train"))
    lab.wait(lambda: phases(lab) == {"Running"}, what="the gang runs")
    cliques, zones = places(lab, CLIQUE), places(lab, ZONE)
    assert {len(found) for found in cliques.values()} == {1}
    assert cliques["model-1"] != cliques["model-2"]
    assert zones == {"model-1": {"a"}, "model-2": {"a"}}


def test_a_gang_that_does_not_fit_has_no_pod_bound(lab: Lab) -> None:
    prepare(lab, two_zones())
    lab.apply(two_models("too-large", size=5))

    def refused() -> bool:
        group = lab.get("podgroups.scheduling.run.ai", "too-large")
        return bool(group and group.get("status", {}).get("schedulingConditions"))

    lab.wait(refused, what="KAI says why")
    assert not any(pod["spec"].get("nodeName") for pod in lab.objects("pods", "default"))
    # What it does next shows that it still schedules, and the gang still waits.
    lab.api.each(lambda pod: lab.api.delete("pod", pod["metadata"]["name"]), lab.objects("pods", "default"))
    lab.api.delete("podgroups.scheduling.run.ai", "too-large")
    lab.apply(two_models("fits"))
    lab.wait(lambda: phases(lab) == {"Running"}, what="the gang that fits runs")


def test_pods_of_a_compute_domain_have_their_claims_allocated(lab: Lab) -> None:
    prepare(lab, two_zones())
    domain = {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomain",
        "metadata": {"name": "train", "namespace": "default"},
        "spec": {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": "train-channel"}}},
    }
    group, *pods = two_models("train")
    for pod in pods:
        _claim(pod, "train-channel")
    lab.apply([domain, group, *pods])
    lab.wait(lambda: phases(lab) == {"Running"}, 30, "the gang runs")
    claims = lab.objects("resourceclaims", "default")
    assert len(claims) == len(pods)
    assert all(claim["status"]["allocation"] and claim["status"]["reservedFor"] for claim in claims)

    def ready() -> bool:
        made = lab.get("computedomain", "train") or {}
        return bool(made.get("status", {}).get("status") == "Ready")

    lab.wait(ready, 30, "the ComputeDomain is ready")


def _claim(pod: dict[str, Any], template: str) -> None:
    pod["spec"]["resourceClaims"] = [{"name": "channel", "resourceClaimTemplateName": template}]
    pod["spec"]["containers"][0]["resources"]["claims"] = [{"name": "channel"}]
