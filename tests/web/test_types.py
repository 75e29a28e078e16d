"""The page and the API agree: types generated from the published schema hold for every use of an answer."""

from __future__ import annotations

import json
import subprocess
from typing import Any, cast

from coterie.service.api.app import create_app
from coterie.service.service import Service
from tests.web.page_service import ROOT

WEB = ROOT / "web"


def test_the_page_uses_the_api_as_its_schema_says(built_page: None) -> None:
    del built_page  # which has installed the programs
    schema = create_app(cast("Service", None), open_to_all=True).openapi()
    (WEB / "openapi.json").write_text(json.dumps(closed(schema)), encoding="utf-8")
    for script in ("types", "check"):
        done = subprocess.run(
            ["npm", "run", "--silent", script],  # noqa: S607 - found where it is installed
            cwd=WEB,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_lock_file_names_no_registry() -> None:
    lock = json.loads((WEB / "package-lock.json").read_text(encoding="utf-8"))
    assert [name for name, package in lock["packages"].items() if "resolved" in package] == []
    assert all("integrity" in package for name, package in lock["packages"].items() if name)


def closed(value: Any) -> Any:
    """Return a schema whose objects have no other fields than those it names, so that a misspelt one is an error."""
    if isinstance(value, dict):
        return {key: closed(each) for key, each in value.items() if (key, each) != ("additionalProperties", True)}
    return [closed(each) for each in value] if isinstance(value, list) else value
