"""What came of a siege."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus

from tests.siege import loot
from tests.siege.raw_http import NO_ANSWER

_SHOWN = 500


@dataclass
class Account:
    """What was answered, and what should not have been.

    answers   how many of each status
    wrong     what must not be: no answer, one of 500, one of 429 since statements that are over keep their places, and
              one that has what is none of the asker's business
    opened    files and addresses that are not the server's own
    health_s  how long each question for its health took
    ended     how the server ended before it was told to; None where it did not
    """

    answers: Counter[int] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    opened: set[tuple[str, str]] = field(default_factory=set)
    health_s: list[float] = field(default_factory=list)
    ended: int | None = None

    def take(self, request: str, ask: Callable[[], tuple[int, str]]) -> None:
        try:
            status, text = ask()
        except NO_ANSWER as fault:
            self.wrong.append(f"{request[:_SHOWN]}\n  no answer: {fault!r}")
            return
        self.answers[status] += 1
        if status in (HTTPStatus.INTERNAL_SERVER_ERROR, HTTPStatus.TOO_MANY_REQUESTS) or loot.MARK in text:
            self.wrong.append(f"{request[:_SHOWN]}\n  {status}: {text[:_SHOWN]}")
