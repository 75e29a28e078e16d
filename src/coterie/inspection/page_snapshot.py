"""One HTML file with the web page and the nodes of a moment in it; it needs no service and requests nothing."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from typing import Any

from coterie.errors import CoterieError
from coterie.inspection.page_files import MISSING, REMEDY, PageFiles

Json = dict[str, Any]

# Text that would end the element of a script, or hide its end; an escaped `<` means the same in strings and patterns.
_MARKUP = re.compile(rb"<(?=/?script|!--)", re.IGNORECASE)


def snapshot_document(files: PageFiles | None, snapshot: Json) -> bytes:
    """Return the page with a snapshot in it as one file; raise where the page was not built.

    The snapshot has the nodes of a pool (`map`), the name of their source (`source`), the time (`written`), warnings
    about them (`notices`), and the first selection as the query of an address (`query`).
    """
    if files is None:
        raise CoterieError(MISSING, REMEDY)
    script = _MARKUP.sub(rb"\\x3c", _only(files, "text/javascript"))
    style = _only(files, "text/css")
    icon = base64.b64encode(_only(files, "image/svg+xml"))
    # Every `<` of the data is escaped, so that no name of a node or an owner is read as markup.
    data = json.dumps(snapshot, separators=(",", ":")).replace("<", "\\u003c").encode()
    return b"".join(
        (
            b'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
            f'<meta http-equiv="Content-Security-Policy" content="{_policy(script, style)}">\n'.encode(),
            b'<meta name="viewport" content="width=device-width, initial-scale=1">\n',
            b'<meta name="color-scheme" content="light dark">\n',
            f"<title>{html.escape(snapshot['map']['pool'])} · Coterie</title>\n".encode(),
            b'<link rel="icon" type="image/svg+xml" href="data:image/svg+xml;base64,' + icon + b'">\n',
            b"<style>" + style + b'</style>\n</head>\n<body>\n<div id="page"></div>\n',
            b"<noscript>This map needs JavaScript. `coterie map` draws the same in a terminal.</noscript>\n",
            b'<script type="application/json" id="snapshot">' + data + b"</script>\n",
            b'<script type="module">' + script + b"</script>\n</body>\n</html>\n",
        )
    )


def _policy(script: bytes, style: bytes) -> str:
    """Return a policy that allows this script and this style sheet, and no request."""
    return (
        f"default-src 'none'; script-src {_digest(script)}; style-src {_digest(style)}; img-src data:; "
        "form-action 'none'; base-uri 'none'"
    )


def _digest(text: bytes) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text).digest()).decode()}'"


def _only(files: PageFiles, kind: str) -> bytes:
    (found,) = [content for media, content in files.assets.values() if media.partition(";")[0] == kind]
    return found
