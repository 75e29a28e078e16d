"""The output formats of commands that draw."""

from __future__ import annotations

from enum import StrEnum

from coterie.cli.output.formats import Output


class Drawing(StrEnum):
    """The format of a map: one of the common ones, or a picture."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"
    SVG = "svg"

    @property
    def plain(self) -> Output:
        """The format of errors beside it."""
        return Output.TABLE if self is Drawing.SVG else Output(self.value)
