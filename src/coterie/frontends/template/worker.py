"""The worker that renders one template in its own process under limits; it is run as a file, not imported.

Reads one JSON object from standard input: `template`, `variables`, `seconds`, `memory` (bytes beyond what the
interpreter holds once Jinja2 is loaded), `output` (characters) and `traced`, the template with marks that tell lines
apart. Writes one JSON object to standard output: either `text`, `names` (every variable the template refers to) and
`traced` (null where that did not render), or `error`, a list of `kind`, `line` and `detail`.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateSyntaxError, UndefinedError, meta, nodes
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment

_TEMPLATE = "<template>"
# A template that takes long delays nobody who asked for less.
_NICE = 10


class _Overtime(BaseException):
    """Raised inside a template that runs too long; not an Exception, because Jinja2 swallows those while folding."""


class _OutputError(Exception):
    """Raised when the output grows beyond its limit."""


def main() -> None:
    """Answer one request."""
    os.nice(_NICE)
    request = json.load(sys.stdin)
    _limit(request["seconds"], request["memory"])
    environment = sandbox()
    try:
        answer = render(environment, request)
        if "text" in answer:
            answer["traced"] = render(environment, request, "traced").get("text")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    json.dump(answer, sys.stdout)


def sandbox() -> ImmutableSandboxedEnvironment:
    """Return the environment of a template, which reaches nothing but its variables."""
    return ImmutableSandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=True)


def _limit(seconds: float, memory: int) -> None:
    # Its own processor time counts, so that a template is not refused because the machine is busy.
    signal.signal(signal.SIGPROF, _overtime)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    # The alarm waits for the end of one long operation, such as a huge power; the kernel limit does not.
    used = resource.getrusage(resource.RUSAGE_SELF)
    whole = int(used.ru_utime + used.ru_stime + seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (whole, whole))
    # Some systems refuse or ignore a limit on address space; time and output stay limited there.
    with contextlib.suppress(OSError, ValueError):
        held = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (held + memory, held + memory))


def _overtime(_number: int, _frame: object) -> None:
    raise _Overtime


def render(
    environment: ImmutableSandboxedEnvironment, request: dict[str, Any], which: str = "template"
) -> dict[str, Any]:
    """Return the answer for one text of a request: what it renders to, or its errors."""
    source, variables = request[which], request["variables"]
    # A workflow is rendered again after a restart, and must be the one that was checked.
    random.seed(json.dumps([request["template"], variables], sort_keys=True))
    template = None
    try:
        tree = environment.parse(source)
        names = meta.find_undeclared_variables(tree)
        template = environment.from_string(source)
        return {"text": _text(template, variables, request["output"]), "names": sorted(names)}
    except TemplateSyntaxError as error:
        return _error("syntax", error.lineno, error.message or "")
    except UndefinedError as error:
        missing = _missing(tree, variables)
        if any(name in str(error) for name, _ in missing):
            return {"error": [{"kind": "undefined", "line": line, "detail": name} for name, line in missing]}
        return _error("attribute", _line(error), str(error))
    except SecurityError as error:
        return _error("security", _line(error), str(error))
    except MemoryError as error:
        return _error("memory", _line(error), "")
    except _OutputError:
        return _error("output", None, "")
    except RecursionError:
        return _error("depth", None, "")
    except _Overtime as error:
        line = next((number for number in reversed(_lines(error))), None)
        return _error("time", template.get_corresponding_lineno(line) if template and line else None, "")
    except Exception as error:  # noqa: BLE001 - a template can raise whatever its filters and operators raise
        return _error("failed", _line(error), f"{type(error).__name__}: {error}")


def _text(template: Template, variables: dict[str, Any], room: int) -> str:
    parts: list[str] = []
    for part in template.generate(variables):
        room -= len(part)
        if room < 0:
            raise _OutputError
        parts.append(part)
    return "".join(parts)


def _error(kind: str, line: int | None, detail: str) -> dict[str, Any]:
    return {"error": [{"kind": kind, "line": line, "detail": detail[:500]}]}


def _missing(tree: nodes.Template, variables: dict[str, Any]) -> list[tuple[str, int]]:
    """Return each variable without a value, at its first use; names with a default or a test are not missing."""
    asked = {
        name.name
        for kind, test in ((nodes.Test, {"defined", "undefined"}), (nodes.Filter, {"default", "d"}))
        for node in tree.find_all(kind)
        if node.name in test and isinstance(name := node.node, nodes.Name)
    }
    unknown = meta.find_undeclared_variables(tree) - variables.keys() - asked
    first: dict[str, int] = {}
    for node in tree.find_all(nodes.Name):
        if node.name in unknown:
            first[node.name] = min(first.get(node.name, node.lineno), node.lineno)
    return sorted(first.items(), key=lambda item: (item[1], item[0]))


def _line(error: BaseException) -> int | None:
    return next(reversed(_lines(error)), None)


def _lines(error: BaseException) -> list[int]:
    return [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == _TEMPLATE and frame.lineno
    ]


if __name__ == "__main__":
    main()
