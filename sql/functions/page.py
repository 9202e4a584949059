"""docs/functions.md, made from the registries: ``python -m dovetail.sql.functions.page`` writes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from dovetail.sql.expressions.dict_functions import USAGE
from dovetail.sql.functions.aggregate_calls import aggregate_names
from dovetail.sql.functions.registry import RefusedCall, Registry, Row
from dovetail.sql.functions.risingwave import functions as risingwave
from dovetail.sql.functions.timeplus import functions as timeplus

PAGE = Path(__file__).resolve().parents[2] / "docs" / "functions.md"

_HEAD = """# Functions

This page is made from the code, by `python -m dovetail.sql.functions.page`.

Expressions mean what they mean where the relations in FROM come from. Streams and dictionaries are Timeplus': the
functions are ClickHouse's, in snake_case; `toInt32` is `to_int32`. Tables and sources are RisingWave's: the functions
are PostgreSQL's. A query over both is read as Timeplus', or by `SETTINGS dialect = 'risingwave'`.

What is not listed is refused, with the nearest name that is. A call that fails for a row, such as an overflow, is NULL
there, and counted. All is computed in batches, by DuckDB.
"""
_APART = """## Dictionaries and aggregates

Functions of dictionaries, of which [lookup joins](joins/lookup.md) tell more: {dictionaries}.

Aggregates, of which [aggregates](aggregates.md) tells more: {aggregates}.
"""
_REFUSED = """\
Refused, since a retraction must equal its insertion, and a batch that is run again must give the same output:

| refused | why | in its place |
| --- | --- | --- |
"""


def page() -> str:
    """The whole page, registry by registry, group by group."""
    parts = [_HEAD]
    for registry, origin in ((timeplus(), "ClickHouse"), (risingwave(), "PostgreSQL")):
        parts += [f"## {registry.dialect}\n", *_groups(registry, origin)]
        if registry.refused:
            parts.append(_refusals(registry))
    parts.append(_APART.format(dictionaries=_codes(USAGE.values()), aggregates=_codes(aggregate_names())))
    return "\n".join(parts)


def _groups(registry: Registry, origin: str) -> Iterator[str]:
    for group, table in registry.groups.items():
        head = f"| {group} | meaning | other than in {origin} |\n| --- | --- | --- |\n"
        yield head + "".join(map(_line, table))


def _line(row: Row) -> str:
    also = f"; also {_codes(row.also.split())}" if row.also else ""
    return f"| `{_cell(row.usage)}` | {_cell(row.meaning)}{also} | {_cell(row.differs)} |\n"


def _refusals(registry: Registry) -> str:
    names: dict[RefusedCall, list[str]] = {}
    for name, refusal in registry.refused.items():
        names.setdefault(refusal, []).append(name)
    rows = (f"| {_codes(found, ' ')} | {_cell(why.reason)} | {_cell(why.fix)} |\n" for why, found in names.items())
    return _REFUSED + "".join(rows)


def _codes(names: Iterable[str], separator: str = ", ") -> str:
    return separator.join(f"`{name}`" for name in names)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page())
