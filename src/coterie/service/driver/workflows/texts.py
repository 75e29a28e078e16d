"""The texts of driven workflows: compiled once, cached, and read again on a thread of their own if needed."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from coterie.config.configuration import Pool
from coterie.errors import CoterieError, SpecErrors, Unavailable
from coterie.frontends.workflow.read import Workflow
from coterie.lifecycle import Spec, State
from coterie.service.settings import Submission
from coterie.service.submission.compilation import CompiledWorkflow, build, read
from coterie.store import Store, Upload, WorkflowRecord
from coterie.topology.levels import Topology

# How many texts are cached, and how many bytes of their files.
_TEXTS = 256
_BYTES = 64 << 20
# How many texts the thread reads ahead of the driver, far fewer than are cached.
_AHEAD = 32
# How long to wait before an unavailable store is asked again.
_PAUSE_S = 0.5


@dataclass(frozen=True, slots=True)
class FreshWorkflow:
    """A workflow that was just submitted here: as it was stored, as it was parsed, and its files."""

    stored: WorkflowRecord
    spec: Spec
    state: State
    built: CompiledWorkflow
    files: Mapping[str, bytes]


# Recently submitted workflows. Any thread may add one.
Fresh = deque[FreshWorkflow]
Text = tuple[Workflow, Mapping[str, bytes]]


class TextPending(Unavailable):
    """Raised for a workflow whose text is being read on another thread; `PromptTexts.ready` names it afterwards."""


def nothing_fresh() -> Fresh:
    """Return the buffer of recent submissions; the oldest are dropped."""
    return deque(maxlen=_TEXTS)


class CachedTexts:
    """The texts of driven workflows, read again when needed; the latest are cached.

    Its methods may be called from any thread, and none waits while another thread reads a text.
    """

    def __init__(self, store: Store, fresh: Fresh | None = None) -> None:
        self._store = store
        self._fresh = nothing_fresh() if fresh is None else fresh
        self._known: OrderedDict[str, Text] = OrderedDict()
        self._built: dict[str, CompiledWorkflow] = {}
        self._submitted: dict[str, FreshWorkflow] = {}
        self._alike: dict[bytes, str] = {}  # by the digest of a text that was read here, the first workflow with it
        self._digests: dict[str, bytes] = {}
        self._bytes = 0
        self._lock = threading.RLock()

    def submitted(self, workflow: str) -> FreshWorkflow | None:
        """Return a workflow that was just submitted here, once."""
        with self._lock:
            self._take_in()
            return self._submitted.pop(workflow, None)

    def at_hand(self, workflow: str) -> Text | None:
        """Return a workflow and the files that came with it, if they are cached."""
        with self._lock:
            self._take_in()
            found = self._known.get(workflow)
            if found is not None:
                self._known.move_to_end(workflow)
            return found

    def built_at_hand(self, workflow: str, pool: Pool, submitted: Topology) -> CompiledWorkflow | None:
        """Return a workflow compiled for its pool, if that is cached."""
        with self._lock:
            self._take_in()
            known = self._built.get(workflow)
            return known if known and known.pool in (pool, replace(pool, topology=submitted)) else None

    def get(self, workflow: str) -> Text:
        """Return a workflow, and the files that came with it."""
        found = self.at_hand(workflow)
        if found is None:
            upload = self._store.upload(workflow)
            text = Submission(
                upload.source,
                upload.file,
                sets=upload.sets,
                set_strings=upload.set_strings,
                amendment=upload.amendment,
                rendered=upload.rendered,
            )
            digest = _digest(upload)
            with self._lock:
                alike = self._known.get(self._alike.get(digest, ""))
            found = alike[0] if alike else read(text), upload.files
            with self._lock:
                self._remember(workflow, *found)
                self._alike.setdefault(digest, workflow)
                self._digests[workflow] = digest
        return found

    def built(self, workflow: str, pool: Pool, submitted: Topology) -> CompiledWorkflow:
        """Return a workflow compiled for its pool now or, where that lacks levels, as it was submitted."""
        known = self.built_at_hand(workflow, pool, submitted)
        if known is not None:
            return known
        text, _ = self.get(workflow)
        with self._lock:
            first = self._alike.get(self._digests.get(workflow, b""), "")
            known = self.built_at_hand(first, pool, submitted)
            if known is not None and known.workflow is text:
                if workflow in self._known:
                    self._built[workflow] = known
                return known
        try:
            found = build(text, pool)
        except SpecErrors:
            found = build(text, replace(pool, topology=submitted))
        with self._lock:
            if workflow in self._known:
                self._built[workflow] = found
        return found

    def forget(self, workflow: str) -> None:
        """Drop a workflow from the cache."""
        with self._lock:
            _, files = self._known.pop(workflow, (None, {}))
            self._bytes -= sum(map(len, files.values()))
            self._built.pop(workflow, None)
            self._submitted.pop(workflow, None)
            digest = self._digests.pop(workflow, b"")
            if self._alike.get(digest) == workflow:
                del self._alike[digest]

    def _take_in(self) -> None:
        while self._fresh:
            fresh = self._fresh.popleft()
            workflow = fresh.stored.id
            self._remember(workflow, fresh.built.workflow, fresh.files)
            self._built[workflow], self._submitted[workflow] = fresh.built, fresh

    def _remember(self, workflow: str, text: Workflow, files: Mapping[str, bytes]) -> None:
        self.forget(workflow)
        self._known[workflow] = text, files
        self._bytes += sum(map(len, files.values()))
        while len(self._known) > _TEXTS or (self._bytes > _BYTES and len(self._known) > 1):
            self.forget(next(iter(self._known)))


def _digest(upload: Upload) -> bytes:
    """Return what tells one text from another, with everything that it was submitted with but its files."""
    rest = (upload.file, upload.sets, upload.set_strings, upload.amendment, upload.rendered)
    return hashlib.sha256(upload.source + b"\0" + repr(rest).encode("utf-8", "surrogatepass")).digest()


class PromptTexts:
    """The texts at hand, for the driver, which never waits for one: others are read on a thread.

    `poke` is called when one has been read.
    """

    def __init__(self, texts: CachedTexts, poke: Callable[[], None]) -> None:
        self._texts, self._poke = texts, poke
        self._condition = threading.Condition()
        self._wanted: OrderedDict[str, tuple[Pool, Topology] | None] = OrderedDict()
        self._failed: dict[str, CoterieError] = {}
        self._ready: list[str] = []
        self._closed = False
        self._thread: threading.Thread | None = None

    def get(self, workflow: str) -> Text:
        """Return a workflow and its files; raise `TextPending` until they have been read."""
        found = self._texts.at_hand(workflow)
        if found is None:
            self._ask(workflow, None)
        return found or self._texts.get(workflow)

    def built(self, workflow: str, pool: Pool, submitted: Topology) -> CompiledWorkflow:
        """Return a workflow compiled for its pool; raise `TextPending` until it has been read."""
        found = self._texts.built_at_hand(workflow, pool, submitted)
        if found is None:
            self._ask(workflow, (pool, submitted))
        return found or self._texts.built(workflow, pool, submitted)

    def ready(self) -> list[str]:
        """Return the workflows that have been read since the last call."""
        with self._condition:
            found, self._ready = self._ready, []
            self._condition.notify_all()
        return found

    def close(self) -> None:
        """End the thread after the text that it is reading."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _ask(self, workflow: str, wanted: tuple[Pool, Topology] | None) -> None:
        """Raise `TextPending`, or the error of an attempt to read it."""
        with self._condition:
            if (error := self._failed.pop(workflow, None)) is not None:
                raise error
            if self._wanted.get(workflow) is None:
                self._wanted[workflow] = wanted
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="coterie-texts", daemon=True)
                self._thread.start()
            self._condition.notify_all()
        raise TextPending(f'workflow "{workflow}" is being read', "Try again in a moment.")

    def _run(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._closed or (self._wanted and len(self._ready) < _AHEAD))
                if self._closed:
                    return
                workflow, wanted = next(iter(self._wanted.items()))
            error = self._read(workflow, wanted)
            with self._condition:
                if error is not None and type(error) is Unavailable:
                    self._condition.wait_for(lambda: self._closed, _PAUSE_S)
                    continue
                self._wanted.pop(workflow, None)
                if error is not None:
                    self._failed[workflow] = error
                self._ready.append(workflow)
            self._poke()

    def _read(self, workflow: str, wanted: tuple[Pool, Topology] | None) -> CoterieError | None:
        try:
            if wanted is None:
                self._texts.get(workflow)
            else:
                self._texts.built(workflow, *wanted)
        except CoterieError as error:
            return error
        except Exception as error:  # noqa: BLE001 - it concerns this workflow alone, which is then put aside
            return UnreadableTextError(f"unexpected {type(error).__name__}: {error}", "")
        return None


class UnreadableTextError(CoterieError):
    """Raised for a text that was accepted once and cannot be read any more."""
