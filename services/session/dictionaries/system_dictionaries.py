"""``system.dictionaries``: what every lookup worker has to say of its dictionaries, added up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from dovetail.services.commands.command_codec import Outcome, Stats
from dovetail.services.session.context import Context
from dovetail.sql.catalog import What
from dovetail.sql.syntax.redact import redacted
from dovetail.sql.syntax.statements import CreateDictionary
from dovetail.sql.system_tables import DICTIONARIES

Figures = Mapping[str, Any]
"""A dictionary's statistics, as a worker's layout reports them."""

_STATUSES = ("FAILED", "FAILED_AND_RELOADING", "LOADING", "LOADED_AND_RELOADING", "LOADED", "NOT_LOADED")
"""What one worker says stands for all, the first of these before the others."""
_SHARES = ("hit_rate", "found_rate")
_LATEST = ("loading_start_time", "last_successful_update_time")
_OF_LATEST = ("loading_duration", "last_exception")
_REPORTED = pa.schema(
    [field.with_type(pa.timestamp("ms", tz="UTC")) if field.name in _LATEST else field for field in DICTIONARIES]
)
"""As workers report it: their times are milliseconds."""


def statistics(context: Context, name: str | None = None) -> pa.Table:
    """A row for each dictionary, or for one. A worker that does not answer is told of, and left out."""
    definitions = [
        relation.definition for relation in context.catalog.relations(What.DICTIONARY) if name in (None, relation.name)
    ]
    reports = _reports(context) if definitions else {}
    lines = [_line(made, reports.get(made.name, ())) for made in definitions if isinstance(made, CreateDictionary)]
    return table_of(lines)


def table_of(lines: Sequence[Mapping[str, Any]]) -> pa.Table:
    """The lines as ``system.dictionaries`` has them."""
    return pa.Table.from_pylist(list(lines), schema=_REPORTED).cast(DICTIONARIES)


def _reports(context: Context) -> Mapping[str, Sequence[Figures]]:
    """The figures of each dictionary, worker by worker."""
    workers = context.live_workers()
    if not workers:
        return {}
    answers = context.commander.give(Stats(), context.live_workers)
    for worker in answers.silent:
        context.say(f"the worker {worker} did not answer within {context.settings.command_timeout_s:g} s: left out")
    found: dict[str, list[Figures]] = {}
    for answer in answers.given:
        for figures in reported(answer.outcome):
            found.setdefault(str(figures["name"]), []).append(figures)
    return found


def reported(outcome: Outcome) -> Iterable[Figures]:
    """The dictionaries in an answer to ``Stats``."""
    return outcome.detail.get("dictionaries", ()) if outcome.ok else ()


def _line(made: CreateDictionary, reports: Sequence[Figures]) -> dict[str, Any]:
    least_s, greatest_s = made.lifetime_s or (0, 0)
    line = merged(reports)
    line |= {
        "name": made.name,
        "type": "external" if made.external else made.layout.name,
        "key": ", ".join(made.primary_key),
        "source": source_text(made),
        "lifetime_min": least_s,
        "lifetime_max": greatest_s,
        "workers": len(reports),
    }
    return line


def source_text(made: CreateDictionary) -> str:
    """``mysql db:3306 shop.products``: where the rows come from, without user and password."""
    given = made.source.parameters
    place = ":".join(str(given[name]) for name in ("host", "port") if name in given)
    table = ".".join(str(given[name]) for name in ("db", "table") if name in given)
    other = next((str(given[name]) for name in ("path", "url", "stream", "name") if name in given), "")
    return redacted(" ".join(part for part in (made.source.name, place or other, table) if part))


def merged(reports: Sequence[Figures]) -> dict[str, Any]:
    """One row of figures: counts added up, shares weighed by the keys that were asked, times of the last one."""
    line: dict[str, Any] = {"status": _status(reports)}
    for field in DICTIONARIES:
        values = [report[field.name] for report in reports if report.get(field.name) is not None]
        if field.name in _SHARES:
            line[field.name] = _weighed(reports, field.name)
        elif field.name in _LATEST:
            line[field.name] = max(values, default=None)
        elif field.name in _OF_LATEST:
            line[field.name] = _last(reports, field.name)
        elif field.name == "load_factor":
            line[field.name] = max(values, default=0.0)
        elif pa.types.is_integer(field.type):
            line[field.name] = sum(values)
    return line


def _status(reports: Sequence[Figures]) -> str:
    said = {str(report.get("status")) for report in reports}
    return next((status for status in _STATUSES if status in said), "NOT_LOADED")


def _weighed(reports: Sequence[Figures], name: str) -> float:
    queried = sum(int(report.get("query_count", 0)) for report in reports)
    if not queried:
        return 0.0
    return sum(float(report.get(name, 0.0)) * int(report.get("query_count", 0)) for report in reports) / queried


def _last(reports: Sequence[Figures], name: str) -> Any:
    """What the worker says that loaded last, of those that say anything."""
    saying = [report for report in reports if report.get(name)]
    return max(saying, key=lambda report: report.get("loading_start_time") or 0)[name] if saying else None
