"""Comparisons, patterns and ``||``: operators that take values of several types."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import SqlError
from dovetail.sql.functions.documents import JSON, in_one_form
from dovetail.sql.functions.interval_columns import INTERVAL, length
from dovetail.sql.functions.risingwave.values.casts import cast, kind_in_common
from dovetail.sql.functions.risingwave.values.kinds import (
    BOOL,
    BYTES,
    CLOCK,
    DOUBLE,
    REAL,
    TEXT,
    is_number,
    is_unknown,
    kind_of,
    name_of,
    no_common_kind,
    quoted,
    typed,
)
from dovetail.sql.functions.risingwave.values.quoted_values import expect_value
from dovetail.sql.functions.risingwave.values.texts import text_of
from dovetail.sql.functions.typed import Typed, filled

SIGNS: Mapping[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM", exp.NullSafeNEQ: "IS DISTINCT FROM",
}  # fmt: skip


def compared(sign: str, left: Typed, right: Typed) -> Typed:
    one, other = comparable([left, right])
    expect_value(left, right, other)
    expect_value(right, left, one)
    trees = [one.tree, other.tree]
    if sign in _OF_KEYS and INTERVAL in (one.known_type, other.known_type):
        # What a join goes by is a value that a column can hold.
        trees = [length(tree) for tree in trees]
    return typed(left, f"{{0}} {sign} {{1}}", trees, BOOL)


_OF_KEYS = ("=", "IS NOT DISTINCT FROM")


def comparable(values: Sequence[Typed]) -> list[Typed]:
    """The values so that the engine's comparison is PostgreSQL's."""
    if {kind_of(value) for value in values if not is_unknown(value)} == {CLOCK, INTERVAL}:
        values = [cast(value, INTERVAL) for value in values]
    kind = kind_in_common("a comparison", values)
    if pa.types.is_map(kind):
        raise SqlError("maps are not compared", fix="compare documents: to_jsonb(a) = to_jsonb(b)")
    kinds = {kind_of(value) for value in values}
    if is_number(kind) and not (kinds & {REAL, DOUBLE}):
        # The engine compares integers and numerics exactly.
        return [cast(value, kind) if is_unknown(value) else value for value in values]
    if kind == REAL and kinds != {REAL}:
        kind = DOUBLE
    return [in_one_form(cast(value, kind)) for value in values]


# Patterns


def liked(left: Typed, right: Typed, *, fold: bool, escape: str = "\\") -> Typed:
    """``LIKE``, with ``\\`` before a sign that stands for itself."""
    one, other = _text(left, "LIKE"), _text(right, "LIKE")
    kind = exp.ILike if fold else exp.Like
    tree = exp.Escape(this=kind(this=exp.Paren(this=one), expression=exp.Paren(this=other)), expression=quoted(escape))
    return left.of(exp.Paren(this=tree), BOOL)


def _text(value: Typed, what: str) -> exp.Expr:
    if not (is_unknown(value) or kind_of(value) == TEXT):
        raise SqlError(f"{what} takes texts, not {name_of(kind_of(value))}", fix="write x::varchar")
    return cast(value, TEXT).tree


def matched(left: Typed, right: Typed, *, fold: bool) -> Typed:
    """``~`` and ``~*``"""
    one, other = _text(left, "~"), pattern_tree(right)
    return typed(left, f"regexp_matches({{0}}, {{1}}, '{'si' if fold else 's'}')", [one, other], BOOL)


_BORDERS = (("\\m", "\\b"), ("\\M", "\\b"), ("\\y", "\\b"), ("\\Y", "\\B"), ("\\Z", "\\z"))


def pattern_tree(value: Typed) -> exp.Expr:
    """A regular expression: the engine's, with the names of PostgreSQL for the borders of words."""
    if isinstance(value.literal, str):
        return quoted(_translated_pattern(value.literal))
    return _text(value, "a pattern")


def _translated_pattern(pattern: str) -> str:
    names = dict(_BORDERS)
    translated = re.sub(r"\\.", lambda found: names.get(found[0], found[0]), pattern)
    if re.search(r"(?<!\\)\(\?<?[=!]|\\[1-9]", translated):
        raise SqlError(f"the pattern '{pattern}' looks around or back", fix="a pattern without (?=..), (?!..) and \\1")
    return translated


def similar(left: Typed, right: Typed) -> Typed:
    """``SIMILAR TO``: % and _ of LIKE, alternatives, repetition, brackets; the whole text must match."""
    if not isinstance(right.literal, str):
        raise SqlError(
            "SIMILAR TO takes its pattern as a text that is written out", fix="use ~ with a regular expression"
        )
    pattern = quoted(_similar_pattern(right.literal))
    return typed(left, "regexp_full_match({0}, {1}, 's')", [_text(left, "SIMILAR TO"), pattern], BOOL)


def _similar_pattern(pattern: str) -> str:
    signs = {"%": ".*", "_": ".", ".": "\\.", "^": "\\^", "$": "\\$"}
    return re.sub(r"\[[^]]*+\]?|\\.|.", lambda found: signs.get(found[0], found[0]), pattern, flags=re.DOTALL)


# Together


def concatenated(left: Typed, right: Typed) -> Typed:
    """Texts, bytes, arrays; a value beside a text is a text, beside an array an element."""
    one, other = kind_of(left), kind_of(right)
    lists = pa.types.is_list(one), pa.types.is_list(other)
    if any(lists):
        return _joined_lists(left, right, *lists)
    if BYTES in (one, other) and (one == other or is_unknown(left) or is_unknown(right)):
        return typed(left, "{0} || {1}", [cast(left, BYTES).tree, cast(right, BYTES).tree], BYTES)
    if JSON in (one, other) and TEXT not in (one, other):
        raise SqlError("|| does not join JSON documents", fix="jsonb_build_object(), jsonb_build_array()")
    if TEXT not in (one, other) and not (left.is_null or right.is_null):
        raise SqlError(f"there is no {name_of(one)} || {name_of(other)}", fix="write x::varchar on one of them")
    return typed(left, "{0} || {1}", [text_of(left).tree, text_of(right).tree], TEXT)


def _joined_lists(left: Typed, right: Typed, left_is_list: bool, right_is_list: bool) -> Typed:
    """NULL beside an array is an array that is empty."""
    if (left_is_list and right_is_list) or is_unknown(left) or is_unknown(right):
        kind = kind_in_common("||", [left, right])
        trees = [cast(value, kind).tree for value in (left, right)]
        template = "CASE WHEN {0} IS NULL THEN {1} WHEN {1} IS NULL THEN {0} ELSE list_concat({0}, {1}) END"
        return typed(left, template, trees, kind)
    array, element = (left, right) if left_is_list else (right, left)
    inner = kind_in_common("||", [array.of(exp.Null(), kind_of(array).value_type), element])
    kind = pa.list_(inner)
    trees = [cast(array, kind).tree, filled("[{0}]", [cast(element, inner).tree])]
    if not left_is_list:
        trees.reverse()
    return typed(left, "list_concat({0}, {1})", trees, kind)


def quantified(compare: Callable[[Typed, Typed], Typed], left: Typed, right: Typed, *, every: bool) -> Typed:
    """``x = ANY(array)``, ``x LIKE ALL(array)``: unknown where an element is NULL and the others do not decide."""
    if isinstance(right.literal, str) and not is_unknown(left):
        right = cast(right, pa.list_(kind_of(left)))
    if right.is_null:
        return cast(right, BOOL)
    kind = kind_of(right)
    if not pa.types.is_list(kind):
        raise no_common_kind("ANY and ALL take an array, and", [kind])
    one = left
    element = right.of(exp.column("e_"), kind.value_type)
    held = compare(one, element).tree
    decides = "false" if every else "true"
    results = filled("list_transform({0}, lambda e_: {1})", [right.tree, held])
    template = (
        f"CASE WHEN {{0}} IS NULL THEN NULL WHEN list_contains({{1}}, {decides}) THEN {decides} "
        f"WHEN len(list_filter({{1}}, lambda b_: b_ IS NULL)) > 0 THEN NULL ELSE NOT {decides} END"
    )
    return typed(left, template, [right.tree, results], BOOL)


def has_all(left: Typed, right: Typed) -> Typed:
    """``left @> right`` of arrays; a NULL is in no array."""
    kind = kind_in_common("@>", [left, right])
    trees = [cast(value, kind).tree for value in (left, right)]
    template = (
        "CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL "
        "THEN list_has_all({0}, {1}) AND len(list_filter({1}, lambda e_: e_ IS NULL)) = 0 END"
    )
    return typed(left, template, trees, BOOL)


def overlaps(left: Typed, right: Typed) -> Typed:
    """``&&``: whether two arrays share an element."""
    kind = kind_in_common("&&", [left, right])
    if not pa.types.is_list(kind):
        raise SqlError(
            f"there is no {name_of(kind)} && {name_of(kind)}", fix="a AND b of two conditions; && is of two arrays"
        )
    return typed(left, "list_has_any({0}, {1})", [cast(value, kind).tree for value in (left, right)], BOOL)
