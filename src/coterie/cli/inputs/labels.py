"""Labels of workflows in options."""

from __future__ import annotations

from coterie.errors import UsageError


def parse_labels(texts: tuple[str, ...]) -> dict[str, str]:
    """Return the labels of KEY=VALUE pairs."""
    pairs = [text.partition("=") for text in texts]
    for text, (key, sign, _) in zip(texts, pairs, strict=True):
        if not key or not sign:
            raise UsageError(f'--label "{text}" is not KEY=VALUE', "Write it as --label team=vision.")
    return {key: value for key, _, value in pairs}
