"""Rows in text: CSV, JSON, and JSON by lines.

    csv, csvwithnames   a header is recognised by the declared names; without one, the declared columns in order.
                        An empty field without quotes and ``\\N`` are NULL, an empty field of a text column is ''.
    json                an array of objects, or an object whose member "data" is one
    jsoneachrow         an object per line; ndjson is the same

A member or column that is missing is NULL; one that is not declared is passed over.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

import orjson
import pyarrow as pa

from dovetail.changelog.errors import SourceRefused
from dovetail.changelog.schema import Column

_NULL = r"\N"
_BY_SUFFIX = {".csv": "csv", ".json": "json", ".ndjson": "jsoneachrow", ".jsonl": "jsoneachrow"}


def format_of(path: str) -> str | None:
    """The format that a file's name tells."""
    return next((found for suffix, found in _BY_SUFFIX.items() if path.lower().endswith(suffix)), None)


def parse_rows(content: bytes, form: str, columns: Sequence[Column], where: str) -> list[tuple[Any, ...]]:
    """One tuple per row with the values of ``columns``, not yet of their types. Raises SourceRefused."""
    try:
        if form in ("csv", "csvwithnames"):
            return _csv(content.decode("utf-8-sig"), columns)
        names = [column.name for column in columns]
        return [tuple(map(members.get, names)) for members in _objects(content, form)]
    except (ValueError, AttributeError, TypeError, csv.Error) as error:
        raise SourceRefused(
            f"the content is no {form}: {error}", where=where, fix="correct FORMAT, or the content"
        ) from error


def _objects(content: bytes, form: str) -> list[dict[str, Any]]:
    if form != "json":
        return [orjson.loads(line) for line in content.splitlines() if line.strip()]
    read = orjson.loads(content) if content.strip() else []
    if isinstance(read, dict):
        read = read["data"] if isinstance(read.get("data"), list) else [read]
    return list(read)


def _csv(text: str, columns: Sequence[Column]) -> list[tuple[Any, ...]]:
    lines = [line for line in csv.reader(io.StringIO(text, newline=""), strict=True) if line]
    names = [column.name for column in columns]
    if lines and set(names) <= set(lines[0]):
        places = [lines[0].index(name) for name in names]
        lines = lines[1:]
    else:
        places = list(range(len(names)))
    texts = [pa.types.is_string(column.type) for column in columns]
    return [
        tuple(map(_field, [line[place] if place < len(line) else _NULL for place in places], texts)) for line in lines
    ]


def _field(field: str, of_text: bool) -> str | None:
    return None if field == _NULL or (not field and not of_text) else field
