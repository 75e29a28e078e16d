"""The web page as one file: allowed by its own policy, and with data that is never read as markup."""

from __future__ import annotations

import base64
import hashlib
import json
import re

import pytest

from coterie.errors import CoterieError
from coterie.inspection.page_files import PageFiles
from coterie.inspection.page_snapshot import snapshot_document

SCRIPT = b'const end = "</script>", start = `<SCRIPT>`, note = /<!--/'
FILES = PageFiles(
    b"",
    {
        "a.js": ("text/javascript; charset=utf-8", SCRIPT),
        "a.css": ("text/css; charset=utf-8", b"body { margin: 0 }"),
        "a.svg": ("image/svg+xml", b"<svg/>"),
    },
)
NASTY = "</script><script>alert(1)</script><!--"


def document(pool: str = "p") -> str:
    return snapshot_document(FILES, {"map": {"pool": pool}, "source": NASTY}).decode()


def test_the_policy_allows_the_script_and_the_style_sheet_by_their_digests_alone() -> None:
    found = document()
    (policy,) = re.findall(r'Security-Policy" content="([^"]*)"', found)
    (script,) = re.findall('<script type="module">(.*?)</script>', found, re.DOTALL)
    (style,) = re.findall("<style>(.*?)</style>", found, re.DOTALL)
    for text in (script, style):
        assert f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "connect-src" not in policy


def test_neither_names_nor_strings_of_the_script_end_its_element() -> None:
    found = document(pool="<b>pool</b>")
    assert len(re.findall("</script", found, re.IGNORECASE)) == 2
    assert len(re.findall("<script", found, re.IGNORECASE)) == 2
    assert "<!--" not in found
    assert "<title>&lt;b&gt;pool" in found
    (data,) = re.findall('id="snapshot">(.*?)</script>', found, re.DOTALL)
    assert json.loads(data)["source"] == NASTY
    assert r"const end = \"\x3c/script>\", start = `\x3cSCRIPT>`".replace('\\"', '"') in found


def test_an_installation_without_the_page_says_how_to_get_it() -> None:
    with pytest.raises(CoterieError, match="Node"):
        snapshot_document(None, {"map": {"pool": "p"}})
