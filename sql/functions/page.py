"""docs/functions.md and docs/functions/, made from the registries by ``python -m dovetail.sql.functions.page``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from dovetail.sql.expressions.dict_functions import USAGE
from dovetail.sql.functions.aggregate_calls import aggregate_names
from dovetail.sql.functions.registry import RefusedCall, Registry, Row
from dovetail.sql.functions.risingwave import functions as risingwave
from dovetail.sql.functions.timeplus import functions as timeplus

DOCS = Path(__file__).resolve().parents[2] / "docs"
_WRITTEN = "is made from the code, by `python -m dovetail.sql.functions.page`."
_HEAD = f"""# Functions

This page {_WRITTEN}

Expressions mean what they mean where the relations in FROM come from. Streams and dictionaries are Timeplus': the
functions are ClickHouse's, in snake_case; `toInt32` is `to_int32`. Tables and sources are RisingWave's: the functions
are PostgreSQL's. A query over both is read as Timeplus', or by `SETTINGS dialect = 'risingwave'`.

What is not listed is refused, with the nearest name that is. A call that fails for a row, such as an overflow, is NULL
there, and counted. All is computed in batches, by DuckDB.

| functions of | page |
| --- | --- |
"""
_PARTS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "Timeplus": {
        "timeplus-numbers.md": ("numbers", "mathematics", "conditions", "conversions"),
        "timeplus-texts.md": ("texts", "patterns", "encodings", "URLs and addresses", "JSON"),
        "timeplus-times.md": ("times", "arrays", "tuples and maps"),
    },
    "RisingWave": {"risingwave.md": ("numbers", "text", "conditions", "times", "json", "arrays", "maps", "rows")},
}
"""The pages of each dialect in ``docs/functions/``, with the groups that stand on them."""
_APART = """## Dictionaries and aggregates

Functions of dictionaries, of which [lookup joins](joins/lookup.md) tell more: {dictionaries}.

Aggregates, of which [aggregates](aggregates.md) tells more: {aggregates}.
"""
_REFUSED = """\
Refused in the dialect of {dialect}, since a retraction must equal its insertion, and a batch that is run again must
give the same output:

| refused | why | in its place |
| --- | --- | --- |
"""


def pages() -> dict[Path, str]:
    """Each page with its text: one for some groups of a registry, and one that leads to them."""
    made, parts = dict[Path, str](), [_HEAD]
    registries = [(timeplus(), "ClickHouse"), (risingwave(), "PostgreSQL")]
    for registry, origin in registries:
        for name, groups in _PARTS[registry.dialect].items():
            title = f"{registry.dialect}: {', '.join(groups)}"
            tables = [_group(group, registry.groups[group], origin) for group in groups]
            head = f"# Functions of {title}\n\nThis page {_WRITTEN} [All functions](../functions.md).\n"
            made[DOCS / "functions" / name] = "\n".join([head, *tables])
            parts[0] += f"| {title} | [{name}](functions/{name}) |\n"
    parts += [_refusals(registry) for registry, _ in registries]
    parts.append(_APART.format(dictionaries=_codes(USAGE.values()), aggregates=_codes(aggregate_names())))
    made[DOCS / "functions.md"] = "\n".join(parts)
    return made


def _group(group: str, table: Sequence[Row], origin: str) -> str:
    head = f"| {group} | meaning | other than in {origin} |\n| --- | --- | --- |\n"
    return head + "".join(map(_line, table))


def _line(row: Row) -> str:
    also = f"; also {_codes(row.also.split())}" if row.also else ""
    return f"| `{_cell(row.usage)}` | {_cell(row.meaning)}{also} | {_cell(row.differs)} |\n"


def _refusals(registry: Registry) -> str:
    names: dict[RefusedCall, list[str]] = {}
    for name, refusal in registry.refused.items():
        names.setdefault(refusal, []).append(name)
    rows = (f"| {_codes(found, ' ')} | {_cell(why.reason)} | {_cell(why.fix)} |\n" for why, found in names.items())
    return _REFUSED.format(dialect=registry.dialect) + "".join(rows)


def _codes(names: Iterable[str], separator: str = ", ") -> str:
    return separator.join(f"`{name}`" for name in names)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    for written, text in pages().items():
        written.write_text(text)
