"""A folder of objects to validate, and helpers that return the findings about them."""

from __future__ import annotations

import json
from typing import Any

from tests.cli.command import CLUSTER, Done, SampleFolder, call, workflow
from tests.frontends.grove.objects import LEVELS, Manifest, changed, constrained, standard

TC = "spec.template.topologyConstraint"


def topology(name: str = "t", *levels: str, **spec: Any) -> Manifest:
    named = [level for level in LEVELS.levels if not levels or level.name in levels]
    listed = [{"domain": level.name, "key": level.label} for level in named]
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "ClusterTopologyBinding",
        "metadata": {"name": name},
        "spec": {"levels": listed, **spec},
    }


def packed(level: str = "rack", name: str = "t") -> Manifest:
    return changed(standard(), constrained("set", {"topologyName": name, "pack": {"required": level}}))


def text(*documents: Manifest) -> str:
    return "\n---\n".join(json.dumps(each, indent=1) for each in documents)


def stocked(desk: SampleFolder) -> SampleFolder:
    """Fill a folder with a topology, a good set, a bad one, and a workflow."""
    desk.file("topology.yaml", text(topology()))
    desk.file("good.yaml", text(packed()))
    desk.file("bad.yaml", text(packed("rak")))
    desk.file("flow.yaml", workflow(2))
    desk.file("cluster.yaml", CLUSTER)
    return desk


def judged(shelf: SampleFolder, words: str, stdin: str = "") -> tuple[Done, Any]:
    done = call("validate", *words.split(), "-o", "json", cwd=shelf.folder, stdin=stdin.encode())
    return done, json.loads(done.out)


def errors(said: Any) -> list[tuple[str, str]]:
    return [(each["type"], each["field"]) for each in said["errors"]]


def codes(said: Any) -> list[str]:
    return [each["code"] for each in said["warnings"]]
