"""The build step that adds the web page to a wheel, where Node.js is; an installation never fails without it.

With COTERIE_PAGE=required it does: a wheel that is published has the page.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PageBuildHook(BuildHookInterface[Any]):
    """The hook that hatchling calls before it collects the files of a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the page; an editable installation uses the one of its checkout, whenever that is built."""
        del build_data
        if self.target_name != "wheel" or version == "editable":
            return
        script = Path(self.root) / "scripts" / "build-page"
        failed = subprocess.run([sys.executable, str(script)], check=False).returncode != 0  # noqa: S603 - a script of this checkout
        if failed and os.environ.get("COTERIE_PAGE") == "required":
            raise RuntimeError("the web page could not be built")
        if failed:
            self.app.display_warning("the web page could not be built; everything else is installed")
