"""Lines that a library writes over and over, while what it needs is away: the first of them, then one a minute."""

from __future__ import annotations

import logging
from dataclasses import dataclass

PAUSE_S = 60.0


@dataclass
class _Place:
    said_s: float
    left_out: int = 0


class FirstOfMany(logging.Filter):
    """Lets a warning of a library through if the same place in its code has written none for ``PAUSE_S``, and says then
    how many it has left out. The clock is that of the records.

    libraries   names of loggers, with those below them; what others write passes
    """

    def __init__(self, *libraries: str) -> None:
        super().__init__()
        self._libraries = libraries
        # A place, not a text: texts hold addresses and numbers, and would be another one each time.
        self._places: dict[tuple[str, int], _Place] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING or record.name.partition(".")[0] not in self._libraries:
            return True
        key = (record.pathname, record.lineno)
        place = self._places.get(key)
        if place is not None and record.created - place.said_s < PAUSE_S:
            place.left_out += 1
            return False
        if place is not None and place.left_out:
            record.msg = f"{record.getMessage()} (and {place.left_out} lines like it that were left out)"
            record.args = ()
        self._places[key] = _Place(record.created)
        return True
