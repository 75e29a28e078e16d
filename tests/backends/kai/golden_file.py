"""Golden files: what a call of `coterie render` prints, compared with a file or written to it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from typer.testing import CliRunner

from coterie.cli.app import app


@dataclass(frozen=True)
class GoldenFile:
    """A call of `coterie render`, and the file with what it prints."""

    folder: Path
    name: str
    arguments: tuple[str, ...]

    def __str__(self) -> str:
        return self.name

    @property
    def file(self) -> Path:
        """The file with the manifests."""
        return self.folder / f"{self.name}.golden.yaml"

    @property
    def manifests(self) -> list[Any]:
        """The manifests of the file."""
        return list(yaml.safe_load_all(self.file.read_text(encoding="utf-8")))

    def compare(self, text: str, *, rewrite: bool) -> None:
        """Compare what was printed with the file, or write it there."""
        if rewrite:
            self.file.write_text(text, encoding="utf-8")
        else:
            assert text == self.file.read_text(encoding="utf-8")


def printed(*arguments: str) -> str:
    """Run `coterie`, which must succeed, and return its standard output."""
    done = CliRunner().invoke(app, arguments, env={"COTERIE_CONFIG": ""})
    assert done.exit_code == 0, done.output
    return done.stdout
