"""Texts: cases, parts, searches, padding.

A text is UTF-8 here, and cannot be cut inside a character: what counts bytes in ClickHouse counts characters here where
it cuts, and bytes where it measures.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pyarrow as pa
from sqlglot import exp

from dovetail.sql.functions.registry import Build, Registry, Unfit
from dovetail.sql.functions.sizes import COMPARED, LARGEST, compared, sized
from dovetail.sql.functions.timeplus.conversions import to_string
from dovetail.sql.functions.typed import Typed, filled

_UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_BYTES_DIFFER = "counts characters, as the _utf8 form: a text cannot be cut inside a character"


def expect_text(arguments: Sequence[Typed], *positions: int) -> None:
    for position in positions:
        if position < len(arguments) and not (arguments[position].is_text or arguments[position].is_null):
            raise Unfit(f"takes a text, not a {arguments[position].family}")


def written_text(value: Typed, what: str) -> str:
    """The text of a literal. Raises Unfit for what is computed."""
    if not isinstance(value.literal, str):
        raise Unfit(f"takes {what} as a text that is written out")
    return value.literal


def as_text(value: Typed) -> exp.Expr:
    """What ``to_string`` gives."""
    return to_string([value]).tree


def _concat(arguments: Sequence[Typed]) -> Typed:
    """Arrays give an array, maps a map; all else is written as a text."""
    first, trees = arguments[0], [argument.tree for argument in arguments]
    if all(argument.is_list for argument in arguments):
        return first.of(filled("list_concat({*})", trees))
    if all(argument.is_map for argument in arguments):
        return first.of(filled("map_concat({*})", trees))
    tree = as_text(first)
    for argument in arguments[1:]:
        tree = filled("{0} || {1}", [tree, as_text(argument)])
    return first.of(tree, pa.string())


def _concat_ws(arguments: Sequence[Typed]) -> exp.Expr:
    separator, parts = arguments[0].tree, arguments[1:]
    joined = as_text(parts[0]) if parts else exp.Literal.string("")
    for part in parts[1:]:
        joined = filled("{0} || {1} || {2}", [joined, separator, as_text(part)])
    return joined


def _length(arguments: Sequence[Typed]) -> exp.Expr:
    (value,) = arguments
    if value.is_text:
        return filled("CAST(strlen({0}) AS UBIGINT)", [value.tree])
    if value.is_map:
        return filled("CAST(cardinality({0}) AS UBIGINT)", [value.tree])
    if value.is_list:
        return filled("CAST(len({0}) AS UBIGINT)", [value.tree])
    raise Unfit(f"takes a text, an array or a map, not a {value.family}")


def _empty(arguments: Sequence[Typed]) -> exp.Expr:
    return filled("{0} = 0", [_length(arguments)])


def _not_empty(arguments: Sequence[Typed]) -> exp.Expr:
    return filled("{0} > 0", [_length(arguments)])


def _reverse(arguments: Sequence[Typed]) -> str:
    return "list_reverse({0})" if arguments[0].is_list else "array_to_string(list_reverse(string_split({0}, '')), '')"


def _substring(arguments: Sequence[Typed]) -> str:
    """From the offset (from 1; below 0 from the end), so many characters; a length below 0 is counted from the end."""
    expect_text(arguments, 0)
    if len(arguments) == 2:
        return "CASE WHEN {1} = 0 THEN '' ELSE substring({0}, CAST({1} AS BIGINT)) END"
    start = "CASE WHEN {1} < 0 THEN length({0}) + {1} + 1 ELSE {1} END"
    return (
        "CASE WHEN {1} = 0 THEN '' WHEN {2} < 0 THEN "
        f"substring({{0}}, {start}, greatest(length({{0}}) + 1 + {{2}} - ({start}), 0)) "
        "ELSE substring({0}, CAST({1} AS BIGINT), CAST({2} AS BIGINT)) END"
    )


def _substring_index(arguments: Sequence[Typed]) -> str:
    """Up to the n-th separator; below 0 from the n-th from the end on."""
    expect_text(arguments, 0, 1)
    parts = "string_split({0}, {1})"
    return (
        "CASE WHEN {2} = 0 THEN CASE WHEN {0} IS NOT NULL THEN '' END "
        f"WHEN {{2}} > 0 THEN array_to_string(list_slice({parts}, 1, {{2}}), {{1}}) "
        f"ELSE array_to_string(list_slice({parts}, greatest(len({parts}) + 1 + {{2}}, 1), len({parts})), {{1}}) END"
    )


def _position(measure: str, fold: bool = False, part_first: bool = False) -> Build:
    """Where a part begins, from 1, as ``measure`` counts; 0 where it is not; with a third argument from there on."""

    def build(arguments: Sequence[Typed]) -> exp.Expr:
        expect_text(arguments, 0, 1)
        first, second = (filled("lower({0})", [one.tree]) if fold else one.tree for one in arguments[:2])
        text, part = (second, first) if part_first else (first, second)
        if len(arguments) == 2:
            before = f"{measure}(substring({{0}}, 1, strpos({{0}}, {{1}}) - 1))"
            return filled(
                f"CASE WHEN contains({{0}}, {{1}}) THEN {before} + 1 ELSE 0 * strlen({{0}} || {{1}}) END", [text, part]
            )
        place = arguments[2].tree
        rest = filled("substring({0}, greatest(CAST({1} AS BIGINT), 1))", [text, place])
        before = f"{measure}(substring({{3}}, 1, greatest(CAST({{2}} AS BIGINT), 1) + strpos({{0}}, {{1}}) - 2))"
        found = f"CASE WHEN contains({{0}}, {{1}}) THEN {before} + 1 ELSE 0 * strlen({{0}} || {{1}}) END"
        return filled(found, [rest, part, place, text])

    return build


def _counted(fold: bool) -> str:
    text, part = ("lower({0})", "lower({1})") if fold else ("{0}", "{1}")
    rest = f"replace({text}, {part}, '')"
    return f"CASE WHEN {{1}} = '' THEN 0 * strlen({{0}}) ELSE (strlen({text}) - strlen({rest})) // strlen({part}) END"


def _padded(function: str, left: bool) -> Build:
    def build(arguments: Sequence[Typed]) -> exp.Expr:
        expect_text(arguments, 0, 2)
        fill = arguments[2].tree if len(arguments) == 3 else exp.Literal.string(" ")
        padded = f"{function}({{0}}, CAST({sized('{1}')} AS INTEGER), {{2}})"
        return filled(padded, [arguments[0].tree, arguments[1].tree, fill])

    return build


def _replace_one(arguments: Sequence[Typed]) -> str:
    expect_text(arguments, 0, 1, 2)
    return (
        "CASE WHEN {1} = '' OR NOT contains({0}, {1}) THEN {0} "
        "ELSE substring({0}, 1, strpos({0}, {1}) - 1) || {2} || substring({0}, strpos({0}, {1}) + length({1})) END"
    )


def _format(arguments: Sequence[Typed]) -> exp.Expr:
    written_text(arguments[0], "the template")
    return filled("format({*})", [arguments[0].tree, *(as_text(one) for one in arguments[1:])])


def _char(arguments: Sequence[Typed]) -> exp.Expr:
    """Of codes below 128: bytes above them are no text by themselves."""
    parts = [
        filled("CASE WHEN {0} BETWEEN 0 AND 127 THEN chr(CAST({0} AS INTEGER)) END", [one.tree]) for one in arguments
    ]
    return filled(" || ".join(f"{{{index}}}" for index in range(len(parts))), parts)


_TRIMS = (
    ("trim_left", "ltrim", "at its beginning"),
    ("trim_right", "rtrim", "at its end"),
    ("trim_both", "trim", "at both ends"),
)

_SEARCHES: Sequence[tuple[str, str, Build]] = (
    ("position(text, part[, from])", "where the part begins, in bytes from 1; 0 where it is not", _position("strlen")),
    ("locate(part, text[, from])", "as position, the part first", _position("strlen", part_first=True)),
    ("position_case_insensitive(text, part[, from])", "as position, letter case aside", _position("strlen", fold=True)),
    ("position_utf8(text, part[, from])", "as position, in characters", _position("length")),
    (
        "position_case_insensitive_utf8(text, part[, from])",
        "as position_utf8, letter case aside",
        _position("length", fold=True),
    ),
)


def register(registry: Registry) -> None:
    add = partial(registry.add, group="texts")
    of_text = partial(registry.add, kind=pa.string(), group="texts")
    count = partial(registry.add, kind=pa.uint64(), group="texts")
    add("concat(a, ..)", "the parts one after another; NULL if one is NULL", _concat, arity=(1, None))
    separated = "the parts with the separator between them"
    of_text("concat_ws(separator, a, ..)", separated, _concat_ws, arity=(1, None), aliases="concat_with_separator")
    of_text("format(template, a, ..)", "the template with {} filled in", _format, arity=(2, None))
    lower = f"translate({{0}}, '{_UPPER}', '{_UPPER.lower()}')"
    of_text("lower(text)", "in small letters, A to Z only", lower, aliases="lcase")
    upper = f"translate({{0}}, '{_UPPER.lower()}', '{_UPPER}')"
    of_text("upper(text)", "in capital letters, a to z only", upper, aliases="ucase")
    of_text("lower_utf8(text)", "in small letters", "lower({0})")
    of_text("upper_utf8(text)", "in capital letters", "upper({0})")
    runs = "regexp_extract_all(lower({0}), '[a-z0-9]+|[^a-z0-9]+')"
    words = f"list_transform({runs}, lambda each_: upper(each_[1]) || each_[2:])"
    of_text("initcap(text)", "the first letter of each word in capitals", f"array_to_string({words}, '')")
    measured = "how many bytes a text has, or elements an array or a map"
    count("length(x)", measured, _length, arity=(1, 1), aliases="octet_length")
    count("length_utf8(text)", "how many characters", "length({0})", aliases="char_length character_length")
    add("empty(x)", "whether a text, an array or a map has nothing in it", _empty, pa.bool_(), arity=(1, 1))
    add("not_empty(x)", "whether there is something in it", _not_empty, pa.bool_(), arity=(1, 1))
    backwards = "reverses characters: a text is not reversed inside a character"
    add(
        "reverse(x)",
        "a text or an array from its end",
        _reverse,
        arity=(1, 1),
        aliases="reverse_utf8",
        differs=backwards,
    )
    part = "a part of a text; an offset below 0 counts from the end"
    of_text(
        "substring(text, offset[, length])", part, _substring, arity=(2, 3), aliases="substr mid", differs=_BYTES_DIFFER
    )
    of_text("substring_utf8(text, offset[, length])", part, _substring, arity=(2, 3), aliases="substr_utf8")
    first, last = "the first n characters; below 0 all but the last", "the last n characters; below 0 all but the first"
    of_text("left(text, n)", first, "left({0}, CAST({1} AS BIGINT))", differs=_BYTES_DIFFER)
    of_text("left_utf8(text, n)", first, "left({0}, CAST({1} AS BIGINT))")
    of_text("right(text, n)", last, "right({0}, CAST({1} AS BIGINT))", differs=_BYTES_DIFFER)
    of_text("right_utf8(text, n)", last, "right({0}, CAST({1} AS BIGINT))")
    before = "what comes before the n-th separator; below 0, after the n-th from the end"
    of_text(
        "substring_index(text, separator, n)", before, _substring_index, arity=(3, 3), aliases="substring_index_utf8"
    )
    for usage, meaning, build in _SEARCHES:
        count(usage, meaning, build, arity=(2, 3), differs="from counts characters")
    begins, ends = "starts_with({0}, {1})", "ends_with({0}, {1})"
    add("starts_with(text, part)", "whether the text begins so", begins, aliases="starts_with_utf8")
    add("ends_with(text, part)", "whether the text ends so", ends, aliases="ends_with_utf8")
    count("count_substrings(text, part)", "how often the part stands in it", _counted(fold=False))
    folded = "how often the part stands in it, letter case aside"
    count("count_substrings_case_insensitive(text, part)", folded, _counted(fold=True))
    for name, function, where in _TRIMS:
        templates = [f"{function}({{0}}, ' ')", f"{function}({{0}}, {{1}})"]
        of_text(f"{name}(text[, signs])", f"without blanks, or the signs given, {where}", templates, aliases=function)
    left, right = _padded("lpad", left=True), _padded("rpad", left=False)
    of_text(
        "left_pad(text, length[, fill])",
        "filled up at its beginning, or cut",
        left,
        arity=(2, 3),
        aliases="lpad left_pad_utf8",
    )
    of_text(
        "right_pad(text, length[, fill])",
        "filled up at its end, or cut",
        right,
        arity=(2, 3),
        aliases="rpad right_pad_utf8",
    )
    times = "CAST(CASE WHEN {} < 0 THEN 0 ELSE %s END AS BIGINT)"
    repeated = f"repeat({{0}}, {(times % sized('{1}')).replace('{}', '{1}')})"
    of_text("repeat(text, n)", f"n times; '' below 1, NULL above {LARGEST:,}", repeated)
    blanks = f"repeat(' ', {(times % sized('{0}')).replace('{}', '{0}')})"
    of_text("space(n)", f"n blanks; NULL above {LARGEST:,}", blanks)
    of_text("replace_one(text, part, by)", "the first place replaced", _replace_one, arity=(3, 3))
    replaced = "CASE WHEN {1} = '' THEN {0} ELSE replace({0}, {1}, {2}) END"
    of_text("replace_all(text, part, by)", "every place replaced", replaced, aliases="replace")
    of_text(
        "translate(text, from, to)",
        "each sign of from by that of to",
        "translate({0}, {1}, {2})",
        aliases="translate_utf8",
    )
    code = "CASE WHEN {0} = '' THEN 0 ELSE ascii({0}) END"
    add("ascii(text)", "the number of its first character", code, pa.int32())
    of_text(
        "char(code, ..)", "the characters of these codes", _char, arity=(1, None), differs="NULL for codes above 127"
    )
    ended = "CASE WHEN {0} = '' OR ends_with({0}, {1}) THEN {0} ELSE {0} || {1} END"
    of_text("append_trailing_char_if_absent(text, sign)", "with the sign at its end", ended)
    distance = f"levenshtein({compared('{0}')}, {compared('{1}')})"
    steps = f"how many signs must change to make one of the other; NULL where one has more than {COMPARED:,}"
    count("edit_distance(a, b)", steps, distance, aliases="levenshtein_distance", differs="counts characters")
    swaps = "as edit_distance, two neighbours that change places counting once"
    count(
        "damerau_levenshtein_distance(a, b)",
        swaps,
        f"damerau_levenshtein({compared('{0}')}, {compared('{1}')})",
        differs="counts characters",
    )
    add("jaro_similarity(a, b)", "how alike they are, from 0 to 1", "jaro_similarity({0}, {1})")
    add("jaro_winkler_similarity(a, b)", "the same, beginnings weighing more", "jaro_winkler_similarity({0}, {1})")
    of_text("to_valid_utf8(text)", "a text is UTF-8 already", "{0}")
