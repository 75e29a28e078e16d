"""The log of a service without free handles."""

from __future__ import annotations

import logging

from coterie.json_log import OncePerSecond


def test_the_want_of_handles_is_logged_once_a_second_and_everything_else_always() -> None:
    paced = OncePerSecond("socket.accept() out of")

    def passes(message: str) -> bool:
        return bool(paced.filter(logging.LogRecord("asyncio", logging.ERROR, "", 0, message, (), None)))

    assert [passes("socket.accept() out of system resource\nsocket: x") for _ in range(100)].count(True) == 1
    assert passes("something else")
    assert passes("something else")
