"""The errors of unsuccessful API answers: one exception, one line, one hint each.

CoterieError
├── Unauthorized       the API does not accept the credentials
├── Forbidden          the user is known but not allowed to do this
├── Conflict           another client changed the object, owns a field of it, or took its name
├── Expired            a version or a page that the API has compacted away
├── NotFound
│   └── MissingKind    the cluster does not have this kind of object
├── SpecErrors         the API rejects the object; every rejected field is a fault
├── UsageError         the call is invalid, or the answer is not from a Kubernetes API
└── Unavailable        too many requests, or a server failure: a retry may help
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from coterie.errors import CoterieError, Fault, FieldError, NotFound, SpecErrors, Unavailable, UsageError
from coterie.kube.kinds import ObjectKind
from coterie.kube.wire import ApiStatus, read_status

_USER = re.compile(r'User "([^"]*)"')
_DENIED = re.compile(r"cannot (\w+) resource")
_MANAGER = re.compile(r'conflict with "([^"]*)"')
_MOST_LISTED = 4
_WRITES = frozenset({"patch", "post", "put", "delete"})
# The verbs of RBAC rules for methods of HTTP.
_RBAC_VERBS = {"post": "create", "put": "update"}
_BUSY = frozenset({408, 425, 429})
_ADMISSION = "A quota, a policy or a webhook of the cluster decided this; ask its admin."
_EXPLAIN = "See what the field allows: kubectl explain."
_FIELD_ERRORS = {
    "FieldValueInvalid": FieldError.INVALID,
    "FieldValueTypeInvalid": FieldError.INVALID,
    "FieldValueTooLong": FieldError.INVALID,
    "FieldValueTooMany": FieldError.INVALID,
    "FieldValueRequired": FieldError.REQUIRED,
    "FieldValueForbidden": FieldError.FORBIDDEN,
    "FieldValueNotFound": FieldError.NOT_FOUND,
    "FieldValueDuplicate": FieldError.DUPLICATE,
    "FieldValueNotSupported": FieldError.NOT_SUPPORTED,
    "InternalError": FieldError.INTERNAL,
}


@dataclass(frozen=True, slots=True)
class RequestDescription:
    """The description of a request, sufficient to report its failure."""

    verb: str
    kind: ObjectKind
    name: str = ""
    namespace: str = ""
    context: str = ""
    server: str = ""
    subresource: str = ""

    def title(self) -> str:
        """Return the name of the object or objects in messages."""
        if not self.name:
            return f"{self.kind.plural}{self._inside()}"
        return f'{self.kind.name} "{f"{self.namespace}/" if self.namespace else ""}{self.name}"'

    def resource(self) -> str:
        """Return the resource as RBAC rules name it."""
        return f"{self.kind.plural}/{self.subresource}" if self.subresource else self.kind.plural

    def _inside(self) -> str:
        return f' in namespace "{self.namespace}"' if self.namespace else ""

    def scope(self) -> str:
        """Return the scope in which a permission would have to be granted."""
        return self._inside() or " in the whole cluster"


class ApiUnauthorized(CoterieError):  # noqa: N818 - the leaf says what happened
    """Raised when the API does not accept the credentials."""


class ApiForbidden(CoterieError):  # noqa: N818 - the leaf says what happened
    """Raised when the user may not perform the request."""

    def __init__(self, message: str, hint: str, call: RequestDescription, user: str) -> None:
        super().__init__(message, hint)
        self.call = call
        self.user = user


class ObjectConflict(CoterieError):  # noqa: N818 - the leaf says what happened
    """Raised when the object is not in the expected state; `managers` own the `fields` that were to be written."""

    def __init__(self, message: str, hint: str, managers: tuple[str, ...] = (), fields: tuple[str, ...] = ()) -> None:
        super().__init__(message, hint)
        self.managers = managers
        self.fields = fields


class Expired(CoterieError):  # noqa: N818 - the leaf says what happened
    """Raised when a version or a page of a list is no longer available; a fresh list is needed."""


class MissingKind(NotFound):
    """Raised when the cluster does not have a kind of object."""

    def __init__(self, message: str, hint: str, kind: ObjectKind) -> None:
        super().__init__(message, hint)
        self.kind = kind


def is_transient(code: int) -> bool:
    """Return whether a retry may succeed after an answer with this status code."""
    return code in _BUSY or code >= 500


def error_of(call: RequestDescription, code: int, body: bytes) -> CoterieError:
    """Return the error for an unsuccessful answer."""
    status = read_status(body)
    said = status or ApiStatus(message=_plain(body))
    if code == 401:
        return _unauthorized(call)
    if code == 403:
        return _forbidden(call, said)
    if code == 404:
        return _not_found(call, status)
    if code == 409:
        return _conflict(call, said)
    if code == 410:
        return Expired(f"{call.title()}: the requested version is no longer available", "Read the list again.")
    if code in {400, 422} and call.verb in _WRITES:
        return SpecErrors(list(_faults(call, said)))
    if is_transient(code):
        return _unavailable(call, code, said)
    if status is None:
        return not_kubernetes(call, f"HTTP {code}")
    message = f"{call.server} refuses to {call.verb} {call.title()}: {_line(said.message)} ({code})"
    return CoterieError(message, "The API server refused this; correct what its message names.")


def not_kubernetes(call: RequestDescription, found: str) -> CoterieError:
    """Return the error of an answer that did not come from a Kubernetes API."""
    hint = "Check the server's address in the kubeconfig; a proxy or a login page may answer instead."
    return UsageError(f"{call.server} does not answer like a Kubernetes API: {found}", hint)


def _unauthorized(call: RequestDescription) -> CoterieError:
    message = f'{call.server} does not accept the credentials of context "{call.context}"'
    hint = "A token may have expired: log in again, then try: kubectl --context {} auth whoami"
    return ApiUnauthorized(message, hint.format(call.context))


def _forbidden(call: RequestDescription, said: ApiStatus) -> CoterieError:
    found = _USER.search(said.message)
    user = found[1] if found else ""
    who = f'user "{user}"' if user else f'the user of context "{call.context}"'
    if found is None and said.message:
        # This is not the authorizer: an admission plugin, a quota or a webhook refused, and states its reason.
        return ApiForbidden(f"{call.title()} is refused: {_line(said.message)}", _ADMISSION, call, user)
    role = "Role" if call.namespace else "ClusterRole"
    # A patch that would have to create the object is refused for the creation.
    denied = _DENIED.search(said.message)
    verb = denied[1] if denied else _RBAC_VERBS.get(call.verb, call.verb)
    rule = f'{{apiGroups: ["{call.kind.group}"], resources: ["{call.resource()}"], verbs: ["{verb}"]}}'
    return ApiForbidden(
        f"{who} may not {verb} {call.resource()}{call.scope()}",
        f"Add this rule to a {role} that is bound to the user: {rule}",
        call,
        user,
    )


def _not_found(call: RequestDescription, status: ApiStatus | None) -> CoterieError:
    details = status.about if status else None
    if status and details and details.name and details.kind == "namespaces" and call.namespace == details.name:
        hint = f"Create it: kubectl create namespace {details.name}"
        return NotFound(f'there is no namespace "{details.name}" in the cluster', hint)
    if call.name and details and details.name == call.name:
        return NotFound(
            f"there is no {call.title()} in the cluster", f"List those it has: kubectl get {call.resource()}"
        )
    if status is None and not call.kind.install:
        # Every Kubernetes API serves its built-in kinds, so a server without them is something else.
        return not_kubernetes(call, "HTTP 404")
    kind = call.kind
    message = f"the cluster has no kind {kind.name} ({kind.api_version})"
    hint = f"{kind.install} Its definition is {kind.crd}." if "." in kind.group else kind.install
    return MissingKind(message, hint, kind)


def _conflict(call: RequestDescription, said: ApiStatus) -> CoterieError:
    causes = [cause for cause in said.about.causes or () if cause.reason == "FieldManagerConflict"]
    if causes:
        matches = [match[1] for cause in causes if (match := _MANAGER.search(cause.message))]
        managers, fields = tuple(dict.fromkeys(matches)), tuple(cause.field for cause in causes)
        owners = _listed(f'"{manager}"' for manager in managers) or "somebody else"
        message = f"{call.title()} has fields managed by {owners}: {_listed(fields)}"
        hint = "Change them there, or remove the object so that it can be created again."
        return ObjectConflict(message, hint, managers, fields)
    if said.reason == "AlreadyExists":
        return ObjectConflict(f"there is already a {call.title()}", "Choose another name, or remove it first.")
    return ObjectConflict(
        f"{call.title()} changed in the meantime: {_line(said.message)}", "Read it again, then try again."
    )


def _faults(call: RequestDescription, said: ApiStatus) -> Iterable[Fault]:
    """Yield a fault for each field that the API rejected, named as the API names it."""
    causes = said.about.causes or ()
    for cause in causes:
        field = cause.field if cause.field != "<nil>" else ""
        about = f"{field}: " if field else ""
        yield Fault(
            f"{call.title()}: {about}{_line(cause.message)}",
            hint=_EXPLAIN,
            type=_FIELD_ERRORS.get(cause.reason, FieldError.INVALID),
            field=field,
        )
    if not causes:
        yield Fault(f"{call.title()} is refused by the API: {_line(said.message)}", hint=_EXPLAIN)


def _unavailable(call: RequestDescription, code: int, said: ApiStatus) -> CoterieError:
    words = _line(said.message) or "no reason given"
    if code == 429:
        return Unavailable(f"{call.server} is busy ({code}): {words}", "Try again in a moment.")
    return Unavailable(f"{call.server} could not {call.verb} {call.title()} ({code}): {words}", "Try again later.")


def _plain(body: bytes) -> str:
    """Return the start of a body that is not a Status, if it is readable text."""
    text = body[:200].decode(errors="replace").strip()
    return "" if text.startswith(("<", "{", "[")) else text


def _line(text: str, limit: int = 300) -> str:
    joined = " ".join(text.split())
    return joined if len(joined) <= limit else f"{joined[: limit - 1]}…"


def _listed(words: Iterable[str]) -> str:
    found = list(words)
    more = f" and {len(found) - _MOST_LISTED} more" if len(found) > _MOST_LISTED else ""
    return ", ".join(found[:_MOST_LISTED]) + more
