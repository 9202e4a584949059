"""Columns of UUIDs: texts of one form, in small letters with hyphens, so that equal ones are equal texts."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

UUID = "uuid"
"""``Column.form`` of such a column."""
_FORM = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
_READ = re.compile(r"[0-9a-f]{4}(-?[0-9a-f]{4}){7}")


def in_small_letters(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.ascii_lower(column)


def of_another_form(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Which values are no UUIDs in the one form; NULL is none of them."""
    return pc.fill_null(pc.invert(pc.match_substring_regex(column, _FORM)), False)


def uuid_text(text: str) -> str:
    """``text`` in the one form, from those that PostgreSQL reads: in capitals, in braces, with hyphens after any four
    digits. Raises ValueError for what is no UUID.
    """
    small = text.lower()
    inner = small[1:-1] if small[:1] + small[-1:] == "{}" else small
    if _READ.fullmatch(inner) is None:
        raise ValueError(text)
    digits = inner.replace("-", "")
    return "-".join([digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]])
