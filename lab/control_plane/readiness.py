"""Waits for the API server: until it answers, and until it serves new kinds."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from lab.api import Api, ApiError
from lab.control_plane.kubernetes import ControlPlane
from lab.errors import LabError
from lab.waits import check

# A machine that builds and tests beside it may need minutes; a server that has ended is told at once.
_PATIENCE = 180.0
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def answering(plane: ControlPlane) -> Api:
    """Return a client of the API server once it is ready; raise `LabError` when it ends or takes too long."""
    deadline = time.monotonic() + _PATIENCE
    problem = "it has written no certificate"
    while time.monotonic() < deadline:
        check([plane.etcd, plane.api_server])
        if plane.authority.exists():
            # The file may be half written: what is read of it is used for one try only.
            try:
                api = Api(plane.url, plane.token, plane.authority.read_text(encoding="utf-8"))
            except OSError as error:
                problem = str(error)
            else:
                try:
                    api.request("GET", "/readyz")
                except ApiError as error:
                    problem = str(error)
                    api.close()
                else:
                    return api
        time.sleep(0.05)
    raise LabError(f"the API server is not ready after {_PATIENCE:g} s: {problem}")


def define(api: Api, built: Iterable[Path]) -> None:
    """Install the definitions of all kinds in the folders of components, and return when they are served."""
    files = [path for folder in built for path in sorted((folder / "crds").glob("*.yaml"))]

    def post(file: Path) -> str:
        # The server reads YAML itself, and much faster than Python.
        made = api.request("POST", _DEFINITIONS, file.read_bytes(), content_type="application/yaml")
        return str(made["metadata"]["name"])

    names = set(api.each(post, files))
    deadline = time.monotonic() + _PATIENCE
    while missing := names - (_established(api) & _discovered(api)):
        if time.monotonic() > deadline:
            raise LabError(f"new kinds are not served after {_PATIENCE:g} s: {', '.join(sorted(missing))}")
        time.sleep(0.05)


def _established(api: Api) -> set[str]:
    return {
        item["metadata"]["name"]
        for item in api.request("GET", _DEFINITIONS)["items"]
        for condition in item.get("status", {}).get("conditions") or ()
        if (condition["type"], condition["status"]) == ("Established", "True")
    }


def _discovered(api: Api) -> set[str]:
    """Return the kinds by which clients find objects; a new one is listed a moment after it is established."""
    return {f"{resource.plural}.{resource.group}" for resource in api.resources()}
