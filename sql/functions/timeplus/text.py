"""Texts: cases, parts, searches, patterns, encodings."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from sql.functions.registry import Registry, Unfit
from sql.functions.typed import Typed, filled

_UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_TEXT = pa.string()
_BYTES_DIFFER = "counts characters, as the _utf8 form: a text here cannot be cut inside a character"


def _expect_text(arguments: Sequence[Typed], *positions: int) -> None:
    for position in positions:
        if position < len(arguments) and not (arguments[position].is_text or arguments[position].is_null):
            raise Unfit(f"takes a text, not a {arguments[position].family}")


def _literal_text(arguments: Sequence[Typed], position: int, what: str) -> str:
    value = arguments[position].literal
    if not isinstance(value, str):
        raise Unfit(f"takes {what} as a text that is written out")
    return value


def as_text(value: Typed) -> exp.Expr:
    """What ``to_string`` gives."""
    from sql.functions.timeplus.conversions import to_string

    return value.tree if value.is_text else to_string([value]).tree


def _concat(arguments: Sequence[Typed]) -> exp.Expr:
    tree = as_text(arguments[0])
    for argument in arguments[1:]:
        tree = filled("{0} || {1}", [tree, as_text(argument)])
    return tree


def _concat_ws(arguments: Sequence[Typed]) -> exp.Expr:
    """As ClickHouse: NULL if a part is NULL; a part may be an array of texts."""
    separator, parts = arguments[0].tree, arguments[1:]
    if not parts:
        return exp.Literal.string("")
    joined = as_text(parts[0])
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
    (value,) = arguments
    return filled("{0} = 0", [_length([value])])


def _substring(arguments: Sequence[Typed]) -> exp.Expr:
    """From the offset (from 1; below 0 from the end), so many characters."""
    _expect_text(arguments, 0)
    trees = [argument.tree for argument in arguments]
    if len(trees) == 2:
        return filled("CASE WHEN {1} = 0 THEN '' ELSE substring({0}, {1}) END", trees)
    start = "CASE WHEN {1} < 0 THEN length({0}) + {1} + 1 ELSE {1} END"
    return filled(
        "CASE WHEN {1} = 0 THEN '' WHEN {2} < 0 THEN "
        f"substring({{0}}, {start}, greatest(length({{0}}) + 1 + {{2}} - ({start}), 0)) "
        "ELSE substring({0}, {1}, {2}) END",
        trees,
    )


def _position(arguments: Sequence[Typed], fold: bool) -> exp.Expr:
    """Counted in bytes from 1; 0 where there is none; with a third argument from there on."""
    _expect_text(arguments, 0, 1)
    whole, part = (filled("lower({0})", [one.tree]) if fold else one.tree for one in arguments[:2])
    if len(arguments) == 2:
        return filled(
            "CASE WHEN contains({0}, {1}) THEN CAST(strlen(substring({0}, 1, strpos({0}, {1}) - 1)) + 1 AS UBIGINT) "
            "ELSE CAST(CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL ELSE 0 END AS UBIGINT) END",
            [whole, part],
        )
    rest = filled("substring({0}, greatest({1}, 1))", [whole, arguments[2].tree])
    return filled(
        "CAST(CASE WHEN contains({0}, {1}) THEN strpos({0}, {1}) + greatest({2}, 1) - 1 "
        "ELSE CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL ELSE 0 END END AS UBIGINT)",
        [rest, part, arguments[2].tree],
    )


def _pattern(arguments: Sequence[Typed], position: int) -> None:
    _expect_text(arguments, 0, position)


def _extract(arguments: Sequence[Typed]) -> exp.Expr:
    """The first group of the first match, the whole match where the pattern has no group; '' where nothing matches."""
    pattern = _literal_text(arguments, 1, "the pattern")
    group = 1 if _groups(pattern) else 0
    return filled(f"regexp_extract({{0}}, {{1}}, {group})", [argument.tree for argument in arguments])


def _extract_all(arguments: Sequence[Typed]) -> exp.Expr:
    pattern = _literal_text(arguments, 1, "the pattern")
    group = 1 if _groups(pattern) else 0
    return filled(f"regexp_extract_all({{0}}, {{1}}, {group})", [argument.tree for argument in arguments])


def _groups(pattern: str) -> int:
    """How many groups of a pattern are counted."""
    import re

    try:
        return re.compile(pattern).groups
    except re.error:
        return pattern.replace("\\(", "").replace("(?", "").count("(")


def replacement(text: str) -> str:
    """A replacement of ClickHouse, ``\\0`` to ``\\9``, for the engine: the same, literal backslashes doubled."""
    return text


def _replace_regexp(arguments: Sequence[Typed], everywhere: bool) -> exp.Expr:
    _expect_text(arguments, 0, 1, 2)
    flags = ", 'g'" if everywhere else ""
    return filled(f"regexp_replace({{0}}, {{1}}, {{2}}{flags})", [argument.tree for argument in arguments])


def _replace_one(arguments: Sequence[Typed]) -> exp.Expr:
    _expect_text(arguments, 0, 1, 2)
    return filled(
        "CASE WHEN {1} = '' OR NOT contains({0}, {1}) THEN {0} "
        "ELSE substring({0}, 1, strpos({0}, {1}) - 1) || {2} || substring({0}, strpos({0}, {1}) + length({1})) END",
        [argument.tree for argument in arguments],
    )


def _split(arguments: Sequence[Typed]) -> exp.Expr:
    _expect_text(arguments, 0, 1)
    separator, whole = arguments[0], arguments[1]
    parts = filled(
        "CASE WHEN {0} = '' THEN CASE WHEN {1} = '' THEN CAST([] AS VARCHAR[]) ELSE string_split({1}, '') END "
        "ELSE string_split({1}, {0}) END",
        [separator.tree, whole.tree],
    )
    if len(arguments) == 3:
        return filled("CASE WHEN {1} > 0 THEN list_slice({0}, 1, {1}) ELSE {0} END", [parts, arguments[2].tree])
    return parts


def _padded(arguments: Sequence[Typed], left: bool) -> exp.Expr:
    _expect_text(arguments, 0, 2)
    fill = arguments[2].tree if len(arguments) == 3 else exp.Literal.string(" ")
    return filled(f"{'lpad' if left else 'rpad'}({{0}}, CAST({{1}} AS INTEGER), {{2}})", [arguments[0].tree, arguments[1].tree, fill])


def _hex(arguments: Sequence[Typed]) -> exp.Expr:
    (value,) = arguments
    if value.is_text or pa.types.is_binary(value.type):
        return filled("hex({0})", [value.tree])
    if value.is_integer and value.literal is None:
        width = value.type.bit_width // 4
        tree = value.tree
        if not value.is_unsigned:
            tree = filled(f"CASE WHEN {{0}} < 0 THEN CAST({{0}} AS HUGEINT) + CAST({1 << value.type.bit_width} AS HUGEINT) ELSE {{0}} END", [tree])
        digits = filled("printf('%X', CAST({0} AS UBIGINT))", [tree])
        return filled("CASE WHEN length({0}) % 2 = 1 THEN '0' || {0} ELSE {0} END", [digits]) if width else digits
    if value.is_integer:
        digits = filled("printf('%X', CAST({0} AS UBIGINT))", [value.tree])
        return filled("CASE WHEN length({0}) % 2 = 1 THEN '0' || {0} ELSE {0} END", [digits])
    raise Unfit(f"takes a text, bytes or a whole number, not a {value.family}")


def _like(fold: bool, negated: bool) -> object:
    def build(arguments: Sequence[Typed]) -> exp.Expr:
        return liked(arguments[0], arguments[1], fold=fold, negated=negated)

    return build


def liked(value: Typed, pattern: Typed, *, fold: bool = False, negated: bool = False) -> exp.Expr:
    """LIKE with ClickHouse's escapes: ``\\%``, ``\\_`` and ``\\\\``; a backslash before any other sign stands for itself."""
    if isinstance(pattern.literal, str):
        escaped: exp.Expr = exp.Literal.string(_unescaped(pattern.literal))
    else:
        escaped = filled("regexp_replace({0}, '\\\\([^%_\\\\])', '\\\\\\\\\\1', 'g')", [pattern.tree])
    word = "ILIKE" if fold else "LIKE"
    tree = filled(f"{{0}} {word} {{1}} ESCAPE '\\'", [value.tree, escaped])
    return exp.Not(this=exp.Paren(this=tree)) if negated else tree


def _unescaped(pattern: str) -> str:
    result, position = [], 0
    while position < len(pattern):
        sign = pattern[position]
        following = pattern[position + 1 : position + 2]
        if sign == "\\" and following not in ("%", "_", "\\"):
            result.append("\\\\")
        elif sign == "\\":
            result.append(sign + following)
            position += 1
        else:
            result.append(sign)
        position += 1
    return "".join(result)


def register(registry: Registry) -> None:
    def add(usage: str, meaning: str, build: object, kind: pa.DataType | None = None, **more: object) -> None:
        registry.add(usage, meaning, build, kind, group="texts", **more)  # type: ignore[arg-type]

    add("concat(a, ..)", "the parts one after another; NULL if one is NULL", _concat, _TEXT, arity=(1, None))
    add("concat_ws(separator, a, ..)", "the parts with the separator between them", _concat_ws, _TEXT, arity=(1, None), aliases="concat_with_separator")
    add("lower(text)", "in small letters, A to Z only", f"translate({{0}}, '{_UPPER}', '{_UPPER.lower()}')", _TEXT, aliases="lcase")
    add("upper(text)", "in capital letters, a to z only", f"translate({{0}}, '{_UPPER.lower()}', '{_UPPER}')", _TEXT, aliases="ucase")
    add("lower_utf8(text)", "in small letters", "lower({0})", _TEXT)
    add("upper_utf8(text)", "in capital letters", "upper({0})", _TEXT)
    add("initcap(text)", "the first letter of each word in capitals", "array_to_string(list_transform(regexp_extract_all(lower({0}), '[a-z0-9]+|[^a-z0-9]+'), lambda w: upper(w[1]) || w[2:]), '')", _TEXT)
    add("length(x)", "how many bytes a text has, or elements an array or a map", _length, pa.uint64(), arity=(1, 1), aliases="octet_length")
    add("length_utf8(text)", "how many characters", "CAST(length({0}) AS UBIGINT)", pa.uint64(), aliases="char_length character_length")
    add("empty(x)", "whether a text, an array or a map has nothing in it", _empty, arity=(1, 1))
    add("not_empty(x)", "whether there is something in it", lambda given: exp.Not(this=exp.Paren(this=_empty(given))), arity=(1, 1))
    add("reverse(x)", "a text or an array from its end", lambda given: filled("list_reverse({0})" if given[0].is_list else "reverse({0})", [given[0].tree]), arity=(1, 1), aliases="reverse_utf8")
    add("substring(text, offset[, length])", "a part of a text; an offset below 0 counts from the end", _substring, _TEXT, arity=(2, 3), aliases="substr mid substring_utf8 substr_utf8", differs=_BYTES_DIFFER)
    add("left(text, n)", "the first n characters; below 0 all but the last", "left({0}, CAST({1} AS BIGINT))", _TEXT, aliases="left_utf8", differs=_BYTES_DIFFER)
    add("right(text, n)", "the last n characters; below 0 all but the first", "right({0}, CAST({1} AS BIGINT))", _TEXT, aliases="right_utf8", differs=_BYTES_DIFFER)
    add("position(text, part[, from])", "where the part begins, from 1; 0 where it is not", lambda given: _position(given, False), pa.uint64(), arity=(2, 3))
    add("locate(part, text[, from])", "as position, the part first", lambda given: _position([given[1], given[0], *given[2:]], False), pa.uint64(), arity=(2, 3))
    add("position_case_insensitive(text, part[, from])", "as position, letter case aside", lambda given: _position(given, True), pa.uint64(), arity=(2, 3))
    add("position_utf8(text, part)", "as position, counted in characters", "CAST(strpos({0}, {1}) AS UBIGINT)", pa.uint64())
    add("starts_with(text, part)", "whether the text begins so", "starts_with({0}, {1})")
    add("ends_with(text, part)", "whether the text ends so", "ends_with({0}, {1})", aliases="")
    add("has_token(text, token)", "whether a word of the text is the token", "list_contains(regexp_split_to_array({0}, '[^A-Za-z0-9]+'), {1})")
    add("count_substrings(text, part)", "how often the part stands in it", "CAST(CASE WHEN {1} = '' THEN 0 ELSE (strlen({0}) - strlen(replace({0}, {1}, ''))) // strlen({1}) END AS UBIGINT)", pa.uint64())
    add("trim_left(text[, signs])", "without blanks, or the signs given, at its beginning", ["ltrim({0}, ' ')", "ltrim({0}, {1})"], _TEXT, aliases="ltrim")
    add("trim_right(text[, signs])", "without them at its end", ["rtrim({0}, ' ')", "rtrim({0}, {1})"], _TEXT, aliases="rtrim")
    add("trim_both(text[, signs])", "without them at both ends", ["trim({0}, ' ')", "trim({0}, {1})"], _TEXT, aliases="trim")
    add("left_pad(text, length[, fill])", "filled up at its beginning, or cut", lambda given: _padded(given, True), _TEXT, arity=(2, 3), aliases="lpad left_pad_utf8")
    add("right_pad(text, length[, fill])", "filled up at its end, or cut", lambda given: _padded(given, False), _TEXT, arity=(2, 3), aliases="rpad right_pad_utf8")
    add("repeat(text, n)", "n times", "CASE WHEN {1} <= 0 THEN CASE WHEN {0} IS NULL THEN NULL ELSE '' END ELSE repeat({0}, CAST({1} AS BIGINT)) END", _TEXT)
    add("space(n)", "n blanks", "repeat(' ', CAST({0} AS BIGINT))", _TEXT)
    add("replace_one(text, part, by)", "the first place replaced", _replace_one, _TEXT, arity=(3, 3))
    add("replace_all(text, part, by)", "every place replaced", "CASE WHEN {1} = '' THEN {0} ELSE replace({0}, {1}, {2}) END", _TEXT, aliases="replace")
    add("replace_regexp_one(text, pattern, by)", "the first match replaced; \\1 is its first group", lambda given: _replace_regexp(given, False), _TEXT, arity=(3, 3))
    add("replace_regexp_all(text, pattern, by)", "every match replaced", lambda given: _replace_regexp(given, True), _TEXT, arity=(3, 3), aliases="replace_regex regexp_replace")
    add("translate(text, from, to)", "each sign of from by that of to", "translate({0}, {1}, {2})", _TEXT, aliases="translate_utf8")
    add("match(text, pattern)", "whether the pattern matches a part of it", "regexp_matches({0}, {1})")
    add("extract(text, pattern)", "the first group of the first match, or the match; '' where there is none", _extract, _TEXT, arity=(2, 2))
    add("extract_all(text, pattern)", "of every match the first group, or the match", _extract_all, arity=(2, 2))
    add("count_matches(text, pattern)", "how many matches there are", "CAST(len(regexp_extract_all({0}, {1})) AS UBIGINT)", pa.uint64())
    add("regexp_extract(text, pattern[, group])", "a group of the first match, the first where none is named", ["regexp_extract({0}, {1}, 1)", "regexp_extract({0}, {1}, CAST({2} AS INTEGER))"], _TEXT)
    add("like(text, pattern)", "text LIKE pattern", _like(False, False), arity=(2, 2))
    add("not_like(text, pattern)", "text NOT LIKE pattern", _like(False, True), arity=(2, 2))
    add("ilike(text, pattern)", "text ILIKE pattern: letter case aside", _like(True, False), arity=(2, 2))
    add("not_ilike(text, pattern)", "text NOT ILIKE pattern", _like(True, True), arity=(2, 2))
    add("split_by_char(separator, text[, most])", "the parts between the separators", _split, arity=(2, 3))
    add("split_by_string(separator, text[, most])", "the parts between the separators; of '' the characters", _split, arity=(2, 3))
    add("split_by_regexp(pattern, text)", "the parts between the matches", "CASE WHEN {0} = '' THEN string_split({1}, '') ELSE string_split_regex({1}, {0}) END")
    add("split_by_whitespace(text)", "the parts between blanks", "list_filter(string_split_regex({0}, '\\s+'), lambda p: p <> '')")
    add("alpha_tokens(text)", "the runs of letters", "regexp_extract_all({0}, '[A-Za-z]+')")
    add("split_part(text, separator, n)", "the n-th part, '' where there is none", "split_part({0}, {1}, CAST({2} AS INTEGER))", _TEXT)
    add("hex(x)", "in hexadecimal digits", _hex, _TEXT, arity=(1, 1))
    add("unhex(text)", "the text that hexadecimal digits stand for", "decode(unhex({0}))", _TEXT)
    add("base64_encode(text)", "in base 64", "to_base64(encode({0}))", _TEXT, aliases="to_base64")
    add("base64_decode(text)", "from base 64", "decode(from_base64({0}))", _TEXT, aliases="from_base64")
    add("try_base64_decode(text)", "from base 64; '' where it is none", "coalesce(TRY(decode(from_base64({0}))), CASE WHEN {0} IS NULL THEN NULL ELSE '' END)", _TEXT)
    add("encode_url_component(text)", "with signs in %xx", "url_encode({0})", _TEXT)
    add("decode_url_component(text)", "from %xx", "url_decode({0})", _TEXT)
    add("domain(url)", "the host of a URL", "regexp_extract({0}, '^(?:[a-zA-Z][a-zA-Z0-9+.-]*:)?//(?:[^/@?#]*@)?([^/:?#]*)', 1)", _TEXT)
    add("path(url)", "the path of a URL", "regexp_extract({0}, '^(?:[a-zA-Z][a-zA-Z0-9+.-]*:)?//[^/?#]*([^?#]*)', 1)", _TEXT)
    add("protocol(url)", "the protocol of a URL", "lower(regexp_extract({0}, '^([a-zA-Z][a-zA-Z0-9+.-]*)://', 1))", _TEXT)
    add("md5(text)", "the MD5 digest, in bytes", "unhex(md5({0}))")
    add("sha1(text)", "the SHA-1 digest, in bytes", "unhex(sha1({0}))")
    add("sha256(text)", "the SHA-256 digest, in bytes", "unhex(sha256({0}))")
    add("ascii(text)", "the number of its first byte", "CAST(CASE WHEN {0} = '' THEN 0 ELSE ascii({0}) END AS INTEGER)", pa.int32())
    add("edit_distance(a, b)", "how many signs must change to make one of the other", "CAST(levenshtein({0}, {1}) AS UBIGINT)", pa.uint64(), aliases="levenshtein_distance")
    add("format(template, a, ..)", "the template with {} filled in", _format, _TEXT, arity=(2, None))


def _format(arguments: Sequence[Typed]) -> exp.Expr:
    _literal_text(arguments, 0, "the template")
    return filled("format({*})", [arguments[0].tree, *(as_text(one) for one in arguments[1:])])
