"""The dependencies of routes: the service, the caller, and bodies to be read."""

from __future__ import annotations

import asyncio
import base64
import binascii
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Annotated, Any, TypeVar, cast

import msgspec
from fastapi import Depends, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import from_json
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from coterie.cancellation import cancelled_by
from coterie.errors import Forbidden, UsageError
from coterie.service.api.change_feed import Followers
from coterie.service.api.models.base import Short
from coterie.service.api.models.requests import Cancel, Priority, Retry, Submit
from coterie.service.api.shared_work import SharedWork
from coterie.service.security import Caller, caller_of
from coterie.service.service import Service
from coterie.service.settings import Submission

# Methods that change nothing.
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
JSON = "application/json"
YAML = ("application/yaml", "application/x-yaml", "text/yaml")

# How many values a repeated parameter may have; a workflow has no more labels.
MANY, LABELS, VALUES = 100, 16, 1000
# A silent stream checks this often whether its caller is still authorised.
RECHECK_S = 15.0
# The size of a body below which parsing it takes less time than handing it to a thread.
_SMALL = 1 << 15

M = TypeVar("M", bound=BaseModel)

_ANY: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])


# Dependencies that do not block are async, which saves a thread: every request has several of them.
async def service_of(request: Request) -> Service:
    """Return the service behind the application."""
    # Dependencies run once the route is known, and metrics are counted by route.
    request.state.route = getattr(request.scope.get("route"), "path", "none")
    return cast("Service", request.app.state.service)


Behind = Annotated[Service, Depends(service_of)]


async def followers_of(request: Request) -> Followers:
    """Return the followers of the change feed."""
    return cast("Followers", request.app.state.followers)


Following = Annotated[Followers, Depends(followers_of)]


async def shared_of(request: Request) -> SharedWork:
    """Return the shared work of concurrent requests."""
    return cast("SharedWork", request.app.state.shared)


Together = Annotated[SharedWork, Depends(shared_of)]


async def who(request: Request, service: Behind, shared: Together) -> Caller:
    """Return the caller; raise `Unauthorized` for an unknown one."""
    header, open_to_all = credentials(request), bool(request.app.state.open_to_all)
    caller = await shared.of(
        ("who", header),
        lambda: caller_of(service.store, header, open_to_all=open_to_all, now=service.settings.now()),
    )
    request.state.caller = caller.name
    return caller


Who = Annotated[Caller, Depends(who)]


def session_cookie(request: Request) -> str:
    """Return the name of the cookie with a browser's token; browsers send the cookies of a host to all its ports."""
    _, port = request.scope.get("server") or ("", 0)
    return f"coterie_session_{port}"


def credentials(request: Request) -> str | None:
    """Return the Authorization header of a request, or the one that the session of a browser stands for.

    Only requests of the service's own page may change something in a session: browsers name the origin of a request
    that changes something, and the guard has compared it.
    """
    header = request.headers.get("authorization")
    token = request.cookies.get(session_cookie(request))
    if header is not None or token is None:
        return header
    if request.method not in SAFE and "origin" not in request.headers:
        raise Forbidden("a request in a session must name its origin", "Send the token in the Authorization header.")
    return f"Bearer {token}"


class Admission:
    """The continued authorisation of a caller: a token may be deleted or expire while a stream is open."""

    def __init__(self, ask: Callable[[], Awaitable[Caller]]) -> None:
        self._ask = ask
        self._asked = time.monotonic()

    async def check(self, *, telling: bool) -> None:
        """Raise `Unauthorized` for a caller who is no longer known, before data is sent, and at intervals."""
        if telling or time.monotonic() - self._asked >= RECHECK_S:
            await self._ask()
            self._asked = time.monotonic()


async def admission_of(request: Request, service: Behind, shared: Together) -> Admission:
    """Return the continued authorisation of a request's caller."""
    return Admission(lambda: who(request, service, shared))


Admitted = Annotated[Admission, Depends(admission_of)]


async def raw(request: Request, _caller: Who) -> bytes:
    """Return the body as it was sent; it is not read for an unknown caller."""
    return await request.body()


Raw = Annotated[bytes, Depends(raw)]


async def presence(request: Request, _body: Raw) -> AsyncIterator[None]:
    """Cancel the work for a request when its caller leaves."""
    left = threading.Event()

    async def watch() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        left.set()

    watcher = asyncio.create_task(watch())
    try:
        with cancelled_by(left):
            yield
    finally:
        watcher.cancel()


# For requests that may take long; it reads nothing more than the body.
PRESENT = Depends(presence)


async def submit_of(
    request: Request,
    body: Raw,
    file: Annotated[Short, Query(description="For a YAML body: the name of the file.")] = "workflow.yaml",
    pool: Annotated[Short | None, Query(description="For a YAML body: the pool.")] = None,
    set_: Annotated[
        list[str] | None, Query(alias="set", max_length=VALUES, description="For a YAML body: KEY=VALUE.")
    ] = None,
    set_string: Annotated[
        list[str] | None, Query(max_length=VALUES, description="For a YAML body: KEY=VALUE, always as text.")
    ] = None,
    priority: Annotated[Priority, Query(description="For a YAML body.")] = "NORMAL",
    label: Annotated[list[str] | None, Query(max_length=LABELS, description="For a YAML body: KEY=VALUE.")] = None,
) -> Submit:
    """Return the submission: the fields of a JSON object, or the workflow itself with the rest in the query."""
    if content_type(request) != JSON:
        return Submit(
            source=_text(body),
            file=file,
            pool=pool,
            set=set_ or [],
            set_string=set_string or [],
            priority=priority,
            label=label or [],
        )
    if beside := sorted(set(request.query_params) & {"file", "pool", "set", "set_string", "priority", "label"}):
        raise UsageError(
            f"with a JSON body, {' and '.join(beside)} must not be in the query as well", "Put it into the body."
        )
    return await parsed(request, body, Submit)


Sent = Annotated[Submit, Depends(submit_of)]


# FastAPI would read and parse the body of a model before it checks the caller, and on the event loop.
async def cancel_of(request: Request, body: Raw) -> Cancel:
    """Return the reason of a cancellation; the body may be empty."""
    return await parsed(request, body, Cancel) if body else Cancel()


Cancelling = Annotated[Cancel, Depends(cancel_of)]


async def retry_of(request: Request, body: Raw) -> Retry:
    """Return the scope of a retry; the body may be empty."""
    return await parsed(request, body, Retry) if body else Retry()


Retrying = Annotated[Retry, Depends(retry_of)]


async def parsed(request: Request, body: bytes, model: type[M]) -> M:
    """Return the content of a JSON body; a large one is parsed on a thread."""
    content_type(request, JSON)
    try:
        if len(body) < _SMALL:
            return model.model_validate_json(body)
        return await run_in_threadpool(model.model_validate_json, body)
    except ValidationError as error:
        raise _invalid(error) from None


def document_of(request: Request, body: Raw) -> bytes | dict[str, Any]:
    """Return a document: YAML unchanged, so that faults have places in it, or the object of a JSON body."""
    if content_type(request) != JSON:
        return body
    try:
        return _ANY.validate_python(from_json(body, allow_inf_nan=False))
    except ValidationError as error:
        raise _invalid(error) from None
    except ValueError as error:
        raise UsageError(f"the body is not JSON: {error}", "Send an object.") from None


Document = Annotated[bytes | dict[str, Any], Depends(document_of)]


def answer(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a value as a JSON response; routes declare its model for the schema, and tests compare the two."""
    return Response(msgspec.json.encode(value), status, headers, media_type=JSON)


def content_type(request: Request, *allowed: str) -> str:
    """Return the type of a body, by default JSON or YAML; raise for any other."""
    found = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if found not in (allowed or (JSON, *YAML)):
        words = " or ".join(allowed or (JSON, YAML[0]))
        raise HTTPException(415, f"a body is {words}, not {found[:80] or 'of no type'}")
    return found


def bodies(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the published schema of a body that is JSON or YAML."""
    content = {JSON: {"schema": schema}, YAML[0]: {"schema": {"type": "string"}}}
    return {"requestBody": {"required": True, "content": content}}


def json_body(model: type[BaseModel]) -> dict[str, Any]:
    """Return the published schema of an optional JSON body."""
    return {"requestBody": {"required": False, "content": {JSON: {"schema": model.model_json_schema()}}}}


def submission(body: Submit, caller: Caller, key: str | None) -> Submission:
    """Return the submission of a request, in the caller's name."""
    return Submission(
        source=body.source.encode(),
        file=body.file,
        pool=body.pool,
        sets=tuple(body.set),
        set_strings=tuple(body.set_string),
        priority=body.priority,
        labels=_labels(body),
        local_files=_files(body.files),
        client_key=key,
        owner=caller.name,
    )


def pairs(texts: list[str] | tuple[str, ...]) -> dict[str, str]:
    """Return labels that are written KEY=VALUE."""
    found: dict[str, str] = {}
    for text in texts:
        key, sign, value = text.partition("=")
        if not sign or not key:
            raise UsageError(f'"{text[:80]}" is not a label', "Write KEY=VALUE.")
        found[key] = value
    return found


def _labels(body: Submit) -> dict[str, str]:
    written = pairs(body.label)
    if twice := sorted(key for key in written.keys() & body.labels.keys() if written[key] != body.labels[key]):
        raise UsageError(f'label and labels disagree about "{twice[0][:80]}"', "Give each label once.")
    return {**written, **body.labels}


def _files(encoded: Mapping[str, str]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for path, text in encoded.items():
        try:
            found[path] = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raise UsageError(f'the file "{path[:120]}" is not base64', "Encode its bytes with base64.") from None
    return found


def _text(body: bytes) -> str:
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"the body is not UTF-8 text: byte {error.start} is wrong", "Send it as UTF-8.") from None


def _invalid(error: ValidationError) -> RequestValidationError:
    listed = error.errors(include_url=False, include_input=False)
    return RequestValidationError([{**one, "loc": ("body", *one["loc"])} for one in listed])
