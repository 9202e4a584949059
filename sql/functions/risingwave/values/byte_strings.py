"""Bytes as texts: PostgreSQL's form hex, ``\\x0aff``, and its form escape, ``a\\377``."""

from __future__ import annotations

from sqlglot import exp

from dovetail.sql.functions.risingwave.values.kinds import quoted
from dovetail.sql.functions.typed import filled

_SIGNS = r"\\\\|\\[0-3][0-7]{2}|[^\\]+"
"""A backslash that is doubled, three octal digits behind one, or what has no backslash."""


def of_text(text: exp.Expr) -> exp.Expr:
    """``text::bytea``: blanks may stand between the bytes of hex. NULL for a text in neither form."""
    template = (
        "CASE WHEN starts_with({0}, '\\x') THEN unhex(regexp_replace(substring({0}, 3), '\\s', '', 'g')) ELSE {1} END"
    )
    return filled(template, [text, unescaped(text)])


def unescaped(text: exp.Expr) -> exp.Expr:
    """``decode(text, 'escape')``"""
    octal = "64 * CAST(s_[2] AS INTEGER) + 8 * CAST(s_[3] AS INTEGER) + CAST(s_[4] AS INTEGER)"
    sign = (
        "CASE WHEN NOT starts_with(s_, {1}) THEN hex(encode(s_)) WHEN s_ = {2} THEN '5C' "
        f"ELSE printf('%02x', {octal}) END"
    )
    template = (
        f"CASE WHEN regexp_full_match({{0}}, {{3}}, 's') THEN "
        f"unhex(array_to_string(list_transform(regexp_extract_all({{0}}, {{4}}, 0, 's'), lambda s_: {sign}), '')) END"
    )
    parts = [text, quoted("\\"), quoted("\\\\"), quoted(f"({_SIGNS})*"), quoted(_SIGNS)]
    return filled(template, parts)


def escaped(value: exp.Expr) -> exp.Expr:
    """``encode(bytes, 'escape')``: a backslash is doubled; noughts and what is no ASCII are octal."""
    byte = "CAST('0x' || b_ AS INTEGER)"
    octal = f"{{1}} || CAST({byte} // 64 AS VARCHAR) || CAST({byte} // 8 % 8 AS VARCHAR) || CAST({byte} % 8 AS VARCHAR)"
    sign = f"CASE WHEN b_ = '00' OR b_ >= '80' THEN {octal} WHEN b_ = '5C' THEN {{2}} ELSE chr({byte}) END"
    template = f"array_to_string(list_transform(regexp_extract_all(hex({{0}}), '..'), lambda b_: {sign}), '')"
    return filled(template, [value, quoted("\\"), quoted("\\\\")])
