"""Texts: cases, parts, searches, padding.

A text is UTF-8 here, and cannot be cut inside a character: what counts bytes in ClickHouse counts characters here where
it cuts, and bytes where it measures.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from dovetail.sql.functions.arguments import written_text
from dovetail.sql.functions.registry import Build, Row, Table, Unfit
from dovetail.sql.functions.sizes import COMPARED, LARGEST, compared, sized
from dovetail.sql.functions.timeplus.conversions import to_string
from dovetail.sql.functions.typed import Typed, filled

_UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_BYTES_DIFFER = "counts characters, as the _utf8 form: a text cannot be cut inside a character"


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


def _reverse(arguments: Sequence[Typed]) -> str:
    return "list_reverse({0})" if arguments[0].is_list else "array_to_string(list_reverse(string_split({0}, '')), '')"


_START = "CASE WHEN {1} < 0 THEN length({0}) + {1} + 1 ELSE {1} END"
_TO_END = f"substring({{0}}, {_START}, greatest(length({{0}}) + 1 + {{2}} - ({_START}), 0))"
_OF_LENGTH = "substring({0}, CAST({1} AS BIGINT), CAST({2} AS BIGINT))"
_SUBSTRING = (
    "CASE WHEN {1} = 0 THEN '' ELSE substring({0}, CAST({1} AS BIGINT)) END",
    f"CASE WHEN {{1}} = 0 THEN '' WHEN {{2}} < 0 THEN {_TO_END} ELSE {_OF_LENGTH} END",
)
"""From the offset (from 1; below 0 from the end), so many characters; a length below 0 is counted from the end."""
_SPLIT = "string_split({0}, {1})"
_SUBSTRING_INDEX = (
    "CASE WHEN {2} = 0 THEN CASE WHEN {0} IS NOT NULL THEN '' END "
    f"WHEN {{2}} > 0 THEN array_to_string(list_slice({_SPLIT}, 1, {{2}}), {{1}}) "
    f"ELSE array_to_string(list_slice({_SPLIT}, greatest(len({_SPLIT}) + 1 + {{2}}, 1), len({_SPLIT})), {{1}}) END"
)
_REPLACE_ONE = (
    "CASE WHEN {1} = '' OR NOT contains({0}, {1}) THEN {0} "
    "ELSE substring({0}, 1, strpos({0}, {1}) - 1) || {2} || substring({0}, strpos({0}, {1}) + length({1})) END"
)


def _position(measure: str, fold: bool = False, part_first: bool = False) -> Build:
    """Where a part begins, from 1, as ``measure`` counts; 0 where it is not; with a third argument from there on."""

    def build(arguments: Sequence[Typed]) -> exp.Expr:
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


def _padded(function: str) -> tuple[str, str]:
    filled_up = f"{function}({{0}}, CAST({sized('{1}')} AS INTEGER), {{2}})"
    return filled_up.replace("{2}", "' '"), filled_up


def _times(count: str, most: str) -> str:
    return f"CAST(CASE WHEN {count} < 0 THEN 0 ELSE {most} END AS BIGINT)"


def _format(arguments: Sequence[Typed]) -> exp.Expr:
    written_text(arguments[0], "the template")
    return filled("format({*})", [arguments[0].tree, *(as_text(one) for one in arguments[1:])])


def _char(arguments: Sequence[Typed]) -> str:
    """Of codes below 128: bytes above them are no text by themselves."""
    code = "CASE WHEN {0} BETWEEN 0 AND 127 THEN chr(CAST({0} AS INTEGER)) END"
    return " || ".join(code.replace("{0}", f"{{{index}}}") for index in range(len(arguments)))


_TEXT, _COUNT = pa.string(), pa.uint64()
_IN_CHARACTERS = "counts characters"
_FROM = "from counts characters"
_LOWER = f"translate({{0}}, '{_UPPER}', '{_UPPER.lower()}')"
_RUNS = "regexp_extract_all(lower({0}), '[a-z0-9]+|[^a-z0-9]+')"
_PART = "a part of a text; an offset below 0 counts from the end"
_FIRST = "the first n characters; below 0 all but the last"
_LAST = "the last n characters; below 0 all but the first"

FUNCTIONS: Table = (
    Row("concat(a, ..)", "the parts one after another; NULL if one is NULL", _concat),
    Row("concat_ws(separator, a, ..)", "the parts with the separator between them", _concat_ws, _TEXT,
        also="concat_with_separator", arity=(1, None)),
    Row("format(template, a, ..)", "the template with {} filled in", _format, _TEXT),
    Row("lower(text)", "in small letters, A to Z only", _LOWER, _TEXT, also="lcase"),
    Row("upper(text)", "in capital letters, a to z only", f"translate({{0}}, '{_UPPER.lower()}', '{_UPPER}')", _TEXT,
        also="ucase"),
    Row("lower_utf8(text)", "in small letters", "lower({0})", _TEXT),
    Row("upper_utf8(text)", "in capital letters", "upper({0})", _TEXT),
    Row("initcap(text)", "the first letter of each word in capitals",
        f"array_to_string(list_transform({_RUNS}, lambda each_: upper(each_[1]) || each_[2:]), '')", _TEXT),
    Row("length(x)", "how many bytes a text has, or elements an array or a map", _length, _COUNT, also="octet_length"),
    Row("length_utf8(text)", "how many characters", "length({0})", _COUNT, also="char_length character_length"),
    Row("empty(x)", "whether a text, an array or a map has nothing in it",
        lambda given: filled("{0} = 0", [_length(given)]), pa.bool_()),
    Row("not_empty(x)", "whether there is something in it", lambda given: filled("{0} > 0", [_length(given)]),
        pa.bool_()),
    Row("reverse(x)", "a text or an array from its end", _reverse, also="reverse_utf8",
        differs="reverses characters: a text is not reversed inside a character"),
    Row("substring(text, offset[, length])", _PART, _SUBSTRING, _TEXT, takes="text number", also="substr mid",
        differs=_BYTES_DIFFER),
    Row("substring_utf8(text, offset[, length])", _PART, _SUBSTRING, _TEXT, takes="text number", also="substr_utf8"),
    Row("left(text, n)", _FIRST, "left({0}, CAST({1} AS BIGINT))", _TEXT, differs=_BYTES_DIFFER, takes="text number"),
    Row("left_utf8(text, n)", _FIRST, "left({0}, CAST({1} AS BIGINT))", _TEXT, takes="text number"),
    Row("right(text, n)", _LAST, "right({0}, CAST({1} AS BIGINT))", _TEXT, differs=_BYTES_DIFFER, takes="text number"),
    Row("right_utf8(text, n)", _LAST, "right({0}, CAST({1} AS BIGINT))", _TEXT, takes="text number"),
    Row("substring_index(text, separator, n)",
        "what comes before the n-th separator; below 0, after the n-th from the end", _SUBSTRING_INDEX, _TEXT,
        takes="text text any", also="substring_index_utf8"),
    Row("position(text, part[, from])", "where the part begins, in bytes from 1; 0 where it is not",
        _position("strlen"), _COUNT, takes="text text any", differs=_FROM),
    Row("locate(part, text[, from])", "as position, the part first", _position("strlen", part_first=True), _COUNT,
        takes="text text any", differs=_FROM),
    Row("position_case_insensitive(text, part[, from])", "as position, letter case aside",
        _position("strlen", fold=True), _COUNT, takes="text text any", differs=_FROM),
    Row("position_utf8(text, part[, from])", "as position, in characters", _position("length"), _COUNT,
        takes="text text any", differs=_FROM),
    Row("position_case_insensitive_utf8(text, part[, from])", "as position_utf8, letter case aside",
        _position("length", fold=True), _COUNT, takes="text text any", differs=_FROM),
    Row("starts_with(text, part)", "whether the text begins so", "starts_with({0}, {1})", also="starts_with_utf8"),
    Row("ends_with(text, part)", "whether the text ends so", "ends_with({0}, {1})", also="ends_with_utf8"),
    Row("count_substrings(text, part)", "how often it contains the part", _counted(fold=False), _COUNT),
    Row("count_substrings_case_insensitive(text, part)", "how often it contains the part, letter case aside",
        _counted(fold=True), _COUNT),
    Row("trim_left(text[, signs])", "without blanks, or the signs given, at its beginning",
        ("ltrim({0}, ' ')", "ltrim({0}, {1})"), _TEXT, also="ltrim"),
    Row("trim_right(text[, signs])", "without blanks, or the signs given, at its end",
        ("rtrim({0}, ' ')", "rtrim({0}, {1})"), _TEXT, also="rtrim"),
    Row("trim_both(text[, signs])", "without blanks, or the signs given, at both ends",
        ("trim({0}, ' ')", "trim({0}, {1})"), _TEXT, also="trim"),
    Row("left_pad(text, length[, fill])", "filled up at its beginning, or cut", _padded("lpad"), _TEXT,
        takes="text any text", also="lpad left_pad_utf8"),
    Row("right_pad(text, length[, fill])", "filled up at its end, or cut", _padded("rpad"), _TEXT,
        takes="text any text", also="rpad right_pad_utf8"),
    Row("repeat(text, n)", f"n times; '' below 1, NULL above {LARGEST:,}",
        f"repeat({{0}}, {_times('{1}', sized('{1}'))})", _TEXT),
    Row("space(n)", f"n blanks; NULL above {LARGEST:,}", f"repeat(' ', {_times('{0}', sized('{0}'))})", _TEXT),
    Row("replace_one(text, part, by)", "the first place replaced", _REPLACE_ONE, _TEXT, takes="text"),
    Row("replace_all(text, part, by)", "every place replaced",
        "CASE WHEN {1} = '' THEN {0} ELSE replace({0}, {1}, {2}) END", _TEXT, also="replace"),
    Row("translate(text, from, to)", "each sign of from by that of to", "translate({0}, {1}, {2})", _TEXT,
        also="translate_utf8"),
    Row("ascii(text)", "the number of its first character", "CASE WHEN {0} = '' THEN 0 ELSE ascii({0}) END",
        pa.int32()),
    Row("char(code, ..)", "the characters of these codes", _char, _TEXT, differs="NULL for codes above 127"),
    Row("append_trailing_char_if_absent(text, sign)", "with the sign at its end",
        "CASE WHEN {0} = '' OR ends_with({0}, {1}) THEN {0} ELSE {0} || {1} END", _TEXT),
    Row("edit_distance(a, b)",
        f"how many signs must change to make one of the other; NULL where one has more than {COMPARED:,}",
        f"levenshtein({compared('{0}')}, {compared('{1}')})", _COUNT, also="levenshtein_distance",
        differs=_IN_CHARACTERS),
    Row("damerau_levenshtein_distance(a, b)", "as edit_distance, two neighbours that change places counting once",
        f"damerau_levenshtein({compared('{0}')}, {compared('{1}')})", _COUNT, differs=_IN_CHARACTERS),
    Row("jaro_similarity(a, b)", "how alike they are, from 0 to 1", "jaro_similarity({0}, {1})"),
    Row("jaro_winkler_similarity(a, b)", "the same, beginnings weighing more", "jaro_winkler_similarity({0}, {1})"),
    Row("to_valid_utf8(text)", "a text is UTF-8 already", "{0}", _TEXT),
)  # fmt: skip
