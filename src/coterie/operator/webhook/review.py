"""The answer to one AdmissionReview, by the rules of `coterie validate`.

Pure. Whatever arrives, an answer is returned: input that cannot be judged is refused, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from coterie.errors import CoterieError, Fault, FieldError, Notice, field_path
from coterie.frontends.admission import (
    KnownTopologies,
    ObjectVerdict,
    TargetCluster,
    judge_graph,
    judge_set,
    judge_topology,
    judged,
)
from coterie.frontends.grove.topology import KINDS
from coterie.frontends.kubernetes.objects import Resource, resource_of
from coterie.kube.kinds import GRAPH_DEPLOYMENT, POD_CLIQUE_SET

Object = Mapping[str, Any]

# The causes of a refusal, in the words of an API server.
_CAUSES = {
    FieldError.INVALID: "FieldValueInvalid",
    FieldError.REQUIRED: "FieldValueRequired",
    FieldError.FORBIDDEN: "FieldValueForbidden",
    FieldError.NOT_FOUND: "FieldValueNotFound",
    FieldError.DUPLICATE: "FieldValueDuplicate",
    FieldError.NOT_SUPPORTED: "FieldValueNotSupported",
    FieldError.INTERNAL: "InternalError",
}
# The kinds that are judged here.
JUDGED = frozenset({*KINDS, POD_CLIQUE_SET.name, GRAPH_DEPLOYMENT.name})
# An API server cuts longer warnings.
_WARNING = 250
_GENERATED = "00000"


class InvalidReviewError(ValueError):
    """Raised for a body that is no AdmissionReview of version v1."""


def answer_to(
    review: object, knowledge: KnownTopologies, site: TargetCluster, owns: Callable[[str], bool] = lambda _: True
) -> dict[str, Any]:
    """Return the AdmissionReview with the response; raise `InvalidReviewError` for a body that is none.

    `owns` says which kinds are this operator's; those of another one are admitted here, since that one judges them.
    """
    request = review.get("request") if isinstance(review, Mapping) else None
    uid = request.get("uid") if isinstance(request, Mapping) else None
    if not isinstance(request, Mapping) or not isinstance(uid, str) or not uid:
        raise InvalidReviewError("the body is not an AdmissionReview with a request and its uid")
    verdict = ObjectVerdict() if _left(request, owns) else verdict_on(request, knowledge, site)
    response: dict[str, Any] = {"uid": uid, "allowed": not verdict.faults}
    if verdict.faults:
        response["status"] = refusal(request, verdict.faults)
    if warnings := list(_warnings(verdict.notices)):
        response["warnings"] = warnings
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


def verdict_on(request: Object, knowledge: KnownTopologies, site: TargetCluster) -> ObjectVerdict:
    """Return the verdict of the rules on a request; one that only deletes, or concerns a deleted object, is allowed."""
    operation = request.get("operation")
    new = request.get("object")
    if operation not in {"CREATE", "UPDATE"} or _leaves(new):
        return ObjectVerdict()
    try:
        return judged(lambda: _judged(request, operation == "UPDATE", knowledge, site))
    except CoterieError as error:
        return ObjectVerdict((Fault(str(error), type=FieldError.INTERNAL, hint=error.hint),))


def refusal(request: Object, faults: tuple[Fault, ...]) -> dict[str, Any]:
    """Return the status of a refusal, with a cause for each fault."""
    kind = request.get("kind")
    about = kind if isinstance(kind, Mapping) else {}
    name = str(request.get("name") or "")
    causes = [_cause(fault) for fault in faults]
    listed = "; ".join(
        f"{cause['field']}: {cause['message']}" if cause["field"] else cause["message"] for cause in causes
    )
    return {
        "status": "Failure",
        "code": 422,
        "reason": "Invalid",
        "message": f'{about.get("kind", "object")} "{name}" is invalid: {listed}',
        "details": {"name": name, "group": about.get("group", ""), "kind": about.get("kind", ""), "causes": causes},
    }


def _judged(request: Object, update: bool, knowledge: KnownTopologies, site: TargetCluster) -> ObjectVerdict:  # noqa: FBT001 - the operation
    new = _resource(request, "object")
    old = _resource(request, "oldObject") if update else None
    if new.kind in KINDS:
        return judge_topology(new, old, site)
    if new.kind == "PodCliqueSet":
        return judge_set(new, old, knowledge, site)
    if new.kind == "DynamoGraphDeployment":
        return judge_graph(new, old, knowledge, site)
    hint = f"The webhook checks {', '.join(KINDS)}, PodCliqueSet and DynamoGraphDeployment."
    said = f"kind {new.kind} is not checked here"
    return ObjectVerdict((Fault(said, hint=hint, type=FieldError.NOT_SUPPORTED, path=("kind",)),))


def _resource(request: Object, field: str) -> Resource:
    """Return an object of a request; a name that the API server will generate is completed."""
    data = request.get(field)
    if not isinstance(data, Mapping):
        return resource_of({}, "")
    metadata = data.get("metadata")
    if isinstance(metadata, Mapping) and not metadata.get("name") and metadata.get("generateName"):
        data = {**data, "metadata": {**metadata, "name": f"{metadata['generateName']}{_GENERATED}"}}
    return resource_of(data, "")


def _left(request: Object, owns: Callable[[str], bool]) -> bool:
    """Return whether a request is about a kind that another operator owns."""
    found = request.get("object")
    kind = found.get("kind") if isinstance(found, Mapping) else None
    return isinstance(kind, str) and kind in JUDGED and not owns(kind)


def _leaves(found: object) -> bool:
    metadata = found.get("metadata") if isinstance(found, Mapping) else None
    return isinstance(metadata, Mapping) and bool(metadata.get("deletionTimestamp"))


def _cause(fault: Fault) -> dict[str, str]:
    reason = _CAUSES.get(fault.type or FieldError.INVALID, "FieldValueInvalid")
    message = f"{fault.message}. {fault.hint}" if fault.hint else fault.message
    return {"reason": reason, "field": fault.field or field_path(fault.path), "message": message}


def _warnings(notices: tuple[Notice, ...]) -> Iterator[str]:
    for notice in notices:
        text = f"{notice.code}: {' '.join(notice.message.split())}"
        yield text if len(text) <= _WARNING else f"{text[: _WARNING - 1]}…"
