"""``dovetail logs view``: what the queries of a view have to say, in the order in which they said it."""

from __future__ import annotations

import heapq
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing

from dovetail.changelog.errors import StackError, UnknownName
from dovetail.runtime.logs.log_reading import Following, last_lines
from dovetail.runtime.logs.query_logs import log_of
from dovetail.runtime.settings import Settings
from dovetail.sql.catalog import Catalog

_POLL_S = 0.1
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT[\d:.]+Z) |\{.*?\"timestamp\": \"([^\"]+)\"")
"""How an entry begins, as text or as JSON."""


def view_log(settings: Settings, view: str, *, follow: bool, lines: int) -> Iterator[str]:
    """The last lines, then, with ``follow``, those to come. A view that is dropped has its log for longer than itself.

    Raises StackError where nothing was logged of it on this machine, UnknownName where there never was such a view.
    """
    paths = [log_of(settings.query_logs, name) for name in _queries(settings, view)]
    if not any(path.exists() for path in paths):
        raise StackError(
            f'"{view}" has no log yet',
            where=str(settings.query_logs),
            fix="a view is logged on the machine of its runner, from its first start on",
        )
    with ExitStack() as opened:
        following = [opened.enter_context(closing(Following(path))) for path in paths]
        past = [last_lines(path, settings.log_files, lines) for path in paths]
        yield from _in_order(past)[-lines:]
        while follow:
            yield from _in_order([one.new_lines() for one in following])
            time.sleep(_POLL_S)


def _queries(settings: Settings, view: str) -> list[str]:
    """The queries that a view is cut into; that of its name where it was dropped, and its log is left."""
    with closing(Catalog.open(settings.catalog_address)) as catalog:
        try:
            return [query.name for query in catalog.fragments(catalog.query(view).view)]
        except UnknownName:
            if log_of(settings.query_logs, view).exists():
                return [view]
            raise


def _in_order(logs: Sequence[Sequence[str]]) -> list[str]:
    """The lines of several logs by their times; those without a time belong to the entry before them."""
    entries = heapq.merge(*(_entries(lines) for lines in logs), key=_time_of)
    return [line for entry in entries for line in entry]


def _entries(lines: Sequence[str]) -> list[list[str]]:
    entries: list[list[str]] = []
    for line in lines:
        if entries and not _TIME.match(line):
            entries[-1].append(line)
        else:
            entries.append([line])
    return entries


def _time_of(entry: Sequence[str]) -> str:
    found = _TIME.match(entry[0])
    return "" if found is None else found[1] or found[2]
