"""The output formats of commands that draw."""

from __future__ import annotations

from enum import StrEnum

from coterie.cli.output.formats import Output


class Drawing(StrEnum):
    """The format of a map: one of the common ones, a picture, or the web page in one file."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"
    SVG = "svg"
    HTML = "html"

    @property
    def plain(self) -> Output:
        """The format of errors beside it."""
        return Output.TABLE if self in {Drawing.SVG, Drawing.HTML} else Output(self.value)
