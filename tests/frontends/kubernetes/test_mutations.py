"""Any mutation of a valid file of objects: no crash, a place for every fault, no breach accepted."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coterie.document.located import documents
from coterie.frontends.admission import TargetCluster
from coterie.planning.validation import InputText, Validation, ValidationContext, validate
from tests.cli.command import call
from tests.frontends.dynamo import objects as dynamo
from tests.frontends.grove import objects as grove
from tests.frontends.grove.objects import Manifest, assigned, changed, constrained, standard
from tests.frontends.slow_rules import breaches, update_breaches
from tests.random_examples import examples

LEVELS = [{"domain": level.name, "key": level.label} for level in grove.LEVELS.levels]


def topology(kind: str, name: str = "t") -> Manifest:
    return {"apiVersion": "grove.io/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": {"levels": LEVELS}}


TODAY = changed(
    standard(),
    constrained("set", {"topologyName": "t", "pack": {"required": "block"}}),
    constrained("shard", {"pack": {"required": "rack", "preferred": "host"}}),
    constrained("lead", {"pack": {"required": "host"}}),
    constrained("a", {"topologyName": "t", "pack": {"preferred": "rack"}}),
    assigned("spec.template.cliques.3.spec.minAvailable", 1),
    assigned("spec.template.podCliqueScalingGroups.0.minAvailable", 2),
)
PROPOSED = changed(
    standard(),
    constrained("set", {"topologyName": "t", "packDomain": "zone"}),
    constrained("work", {"packDomain": "rack"}),
    constrained("b", {"packDomain": "host"}),
)
VALID = {
    "today": [topology("ClusterTopologyBinding"), topology("ClusterTopologyBinding", "u"), TODAY],
    "proposal": [topology("ClusterTopology"), PROPOSED],
    "v1beta1": [topology("ClusterTopologyBinding"), dynamo.beta()],
    "v1alpha1": [topology("ClusterTopology"), dynamo.alpha()],
}
JUNK: list[Any] = [None, [], {}, "", "x", -1, 0, 7, True, 0.5, 10**400, "9" * 40, [None], {"": []}, "größe", "rack\n"]
WORDS: list[Any] = ["zone", "block", "rack", "host", "t", "u", "a", "lead", "shard", "kai-scheduler", "volcano", "main"]
KEYS = ["name", "spec", "template", "replicas", "minAvailable", "packDomain", "pack", "required", "topologyName", "x"]
KINDS = ["PodCliqSet", "podcliqueset", "ClusterTopologyBindings", "DynamoGraphDeploymnt", "Deployment", "List", ""]
VERSIONS = ["grove.io/v1", "grove.io/v1alpha1", "nvidia.com/v1alpha1", "nvidia.com/v1", "v1", "", 1]

# The first two keep the shape, so that rules and not readers have to find what is wrong.
mutations = st.sampled_from(
    ["word"] * 8 + ["number"] * 4 + ["put", "delete", "rename", "misspell", "copy", "kind", "version", "nest", "gone"]
)
tears = st.sampled_from([""] * 24 + ["twice", "cut", "tab", "control", "crlf", "latin"])


def spots(data: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every holder and key of nested data."""
    for key in list(data) if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ():
        yield data, key
        yield from spots(data[key])


def mutate(data: st.DataObject, found: list[Any]) -> None:
    """Change one thing in a list of documents."""
    kind = data.draw(mutations)
    if kind == "gone" or not found:
        del found[:1]
        return
    places = list(spots(found))
    if kind == "word":
        places = [(holder, key) for holder, key in places if holder[key] in WORDS] or places
    elif kind == "number":
        places = [(holder, key) for holder, key in places if isinstance(holder[key], int)] or places
    holder, key = data.draw(st.sampled_from(places))
    match kind:
        case "word":
            holder[key] = data.draw(st.sampled_from(WORDS))
        case "number":
            holder[key] = data.draw(st.integers(-1, 5))
        case "put":
            holder[key] = copy.deepcopy(data.draw(st.sampled_from(JUNK)))
        case "delete":
            del holder[key]
        case "copy" if isinstance(holder, list):
            holder.insert(data.draw(st.integers(0, len(holder))), copy.deepcopy(holder[key]))
        case "rename" if isinstance(holder, dict):
            holder[data.draw(st.sampled_from(KEYS))] = holder.pop(key)
        case "misspell" if isinstance(holder, dict) and key:
            place = data.draw(st.integers(0, len(key) - 1))
            holder[key[:place] + key[place + 1 :]] = holder.pop(key)
        case "kind" if isinstance(found[-1], dict):
            found[-1]["kind"] = data.draw(st.sampled_from(KINDS))
        case "version" if isinstance(found[-1], dict):
            found[-1]["apiVersion"] = data.draw(st.sampled_from(VERSIONS))
        case "nest":
            for _ in range(data.draw(st.sampled_from([1, 100]))):
                holder[key] = {"a": holder[key]}
        case _:
            holder[key] = [holder[key]]


def written(data: st.DataObject, found: list[Any]) -> bytes:
    """Write documents as JSON or YAML, and perhaps tear the text."""
    if data.draw(st.booleans()):
        text = "".join(f"---\n{json.dumps(each, indent=1)}\n" for each in found)
    else:
        text = "".join(f"---\n{yaml.safe_dump(each, sort_keys=False, allow_unicode=True)}" for each in found)
    tear = data.draw(tears)
    lines = text.split("\n")
    place = data.draw(st.integers(0, len(lines) - 1))
    if tear == "twice":
        lines.insert(place, lines[place])
    elif tear == "cut":
        del lines[place + 1 :]
    elif tear in {"tab", "control"}:
        lines[place] = lines[place].replace(" ", "\t" if tear == "tab" else "\x07", 1)
    encoded = ("\r\n" if tear == "crlf" else "\n").join(lines).encode()
    return encoded + b"# \xff\n" if tear == "latin" else encoded


def mutated(data: st.DataObject) -> tuple[str, bytes]:
    name = data.draw(st.sampled_from(sorted(VALID)))
    found = copy.deepcopy(VALID[name])
    for _ in range(data.draw(st.integers(1, 3))):
        mutate(data, found)
    return name, written(data, found)


def judged(text: bytes, *, strict: bool = False, old: list[Manifest] | None = None) -> Validation:
    """Judge a text, and hold that every fault and warning has a message and a place."""
    before = None if old is None else [InputText("old.yaml", plain(old))]
    found = validate([InputText("new.yaml", text)], ValidationContext(TargetCluster(strict)), before)
    assert all(each.message and each.place and each.place.line for each in found.faults)
    assert all(each.message and each.place for each in found.notices)
    return found


def plain(found: list[Manifest]) -> bytes:
    return "\n---\n".join(json.dumps(each, indent=1) for each in found).encode()


def read(text: bytes) -> list[Any]:
    return [each.data for each in documents(text.decode("utf-8-sig"), "new.yaml")]


@pytest.mark.parametrize("name", VALID)
def test_the_documents_are_valid_before_they_are_changed(name: str) -> None:
    assert judged(plain(VALID[name])).valid
    assert breaches(VALID[name], strict=False) == []


@pytest.mark.slow("reads hundreds of mutated files")
@settings(max_examples=examples(500), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data(), st.booleans())
def test_a_mutated_file_is_refused_with_places_or_keeps_the_rules(data: st.DataObject, strict: bool) -> None:  # noqa: FBT001 - drawn
    _, text = mutated(data)
    if judged(text, strict=strict).valid:
        assert breaches(read(text), strict=strict) == []


@pytest.mark.slow("calls a command for each of many mutated files")
@settings(max_examples=examples(50), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data(), st.booleans())
def test_the_command_line_answers_a_mutated_file(data: st.DataObject, strict: bool) -> None:  # noqa: FBT001 - drawn
    _, text = mutated(data)
    done = call("validate", "-", "-o", "json", *(["--strict"] if strict else []), stdin=text)
    said, found = json.loads(done.out), judged(text, strict=strict)
    assert done.code == (0 if found.valid else 3)
    assert "Traceback" not in done.err
    assert [each["message"] for each in said["errors"]] == [each.message for each in found.faults]
    assert all(each["file"] == "standard input" and each["line"] for each in said["errors"])


@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_mutated_update_is_refused_with_places_or_keeps_the_rules(data: st.DataObject) -> None:
    name, text = mutated(data)
    if not judged(text, old=VALID[name]).valid:
        return
    sets = [each for each in read(text) if each["kind"] == "PodCliqueSet"]
    for each in sets:
        before = next((one for one in VALID[name] if one["metadata"] == each["metadata"]), None)
        assert before is None or list(update_breaches(before, each)) == []


@pytest.mark.slow("puts every odd value at every place of a file")
@pytest.mark.parametrize("name", VALID)
def test_no_value_at_any_place_breaks_anything(name: str) -> None:
    """The same without chance: each value that is written is replaced by each of a few others, one at a time."""
    base = copy.deepcopy(VALID[name])
    replacements: tuple[Any, ...] = (None, [], {}, "x", -1, 10**400)
    for holder, key in list(spots(base)):
        kept = holder[key]
        for junk in replacements:
            holder[key] = junk
            text = plain(base)
            if judged(text).valid:
                assert breaches(read(text), strict=False) == [], (key, junk)
        holder[key] = kept


HOSTILE: dict[str, tuple[bytes, int]] = {
    "a misspelt kind": (plain([changed(TODAY, assigned("kind", "PodCliqeSet"))]), 3),
    "a kind in lower case": (plain([changed(TODAY, assigned("kind", "podcliqueset"))]), 3),
    "a wrong version": (plain([changed(TODAY, assigned("apiVersion", "grove.io/v1"))]), 3),
    "no version": (plain([changed(TODAY, assigned("apiVersion", ""))]), 3),
    "the version of another kind": (plain([changed(TODAY, assigned("apiVersion", "nvidia.com/v1beta1"))]), 3),
    "a list for a map": (plain([changed(TODAY, assigned("spec.template", []))]), 3),
    "a map for a list": (plain([changed(TODAY, assigned("spec.template.cliques", {}))]), 3),
    "a number as text": (plain([changed(TODAY, assigned("spec.replicas", "2"))]), 3),
    "text as a number": (plain([changed(TODAY, assigned("spec.template.cliques.0.name", 7))]), 3),
    "a fraction of a replica": (plain([changed(TODAY, assigned("spec.replicas", 0.5))]), 3),
    "levels the other way round": (
        plain([changed(VALID["today"][0], assigned("spec.levels", LEVELS[::-1])), TODAY]),
        3,
    ),
    "another topology": (plain([topology("ClusterTopologyBinding", "u"), TODAY]), 3),
    "a key twice": (b"---\n" + plain([TODAY]).replace(b'"replicas": 1,', b'"replicas": 1,\n  "replicas": 9,'), 3),
    "an alias that holds itself": (b"apiVersion: grove.io/v1alpha1\nkind: PodCliqueSet\nmetadata: &a {name: *a}\n", 3),
    "a tag": (b"apiVersion: grove.io/v1alpha1\nkind: !!python/name:os.system PodCliqueSet\n", 3),
    "only a kind": (b"kind: PodCliqueSet\n", 3),
    "a scalar": (b"---\nkind: x\n---\njust text\n", 3),
    "nothing that has rules": (b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n", 0),
    "an empty list": (b'{"apiVersion": "v1", "kind": "List", "items": []}', 0),
    "a list of lists": (b'{"apiVersion": "v1", "kind": "List", "items": [[]]}', 3),
    "nothing": (b"", 3),
    "bytes": (b"apiVersion: grove.io/v1alpha1\nkind: \xff\xfe\n", 3),
    "a pod spec of 1 MB in one value": (
        plain([changed(standard(), assigned("spec.template.cliques.0.spec.podSpec.x", "y" * (1 << 20)))]),
        0,
    ),
    "a pod spec of 1 MB in many values": (
        plain(
            [
                changed(
                    standard(),
                    assigned(
                        "spec.template.cliques.0.spec.podSpec.containers.0.env",
                        [{"name": f"VARIABLE_{number}", "value": "v" * 20} for number in range(12_000)],
                    ),
                )
            ]
        ),
        0,
    ),
    "more than is ever read": (plain([standard()]) + b"#" * (5 << 20), 3),
}


@pytest.mark.parametrize(("text", "code"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_gets_an_answer(text: bytes, code: int) -> None:
    done = call("validate", "-", stdin=text)
    assert done.code == code, done.err
    assert "Traceback" not in done.err
    assert done.out.splitlines()[-1].endswith(".")
