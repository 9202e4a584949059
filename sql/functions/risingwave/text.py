"""Texts: cases, parts, searches, patterns, encodings. Positions are of characters, from 1."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp

from dovetail.sql.functions.arguments import written_text
from dovetail.sql.functions.registry import Build, Row, Table, Unfit
from dovetail.sql.functions.risingwave import byte_numbers, patterns
from dovetail.sql.functions.risingwave.signatures import argument
from dovetail.sql.functions.risingwave.values.byte_strings import escaped, unescaped
from dovetail.sql.functions.risingwave.values.casts import cast
from dovetail.sql.functions.risingwave.values.kinds import (
    BOOL,
    BYTES,
    INT,
    TEXT,
    is_unknown,
    kind_of,
    name_of,
    quoted,
    typed,
)
from dovetail.sql.functions.risingwave.values.texts import output_of
from dovetail.sql.functions.sizes import LARGEST, sized
from dovetail.sql.functions.typed import Typed, filled


def _concat(given: Sequence[Typed]) -> Typed:
    """NULLs are left out."""
    return typed(given[0], "concat({*})", [output_of(value).tree for value in given], TEXT)


def _concat_ws(given: Sequence[Typed]) -> Typed:
    separator, *parts = given
    return typed(separator, "concat_ws({*})", [separator.tree, *(output_of(value).tree for value in parts)], TEXT)


_FORMAT = re.compile(r"%(?:(\d+)\$)?(-)?(\d+)?([sIL%])")
_IDENTIFIER = (
    "CASE WHEN regexp_matches({0}, '^[a-z_][a-z0-9_$]*$') THEN {0} ELSE '\"' || replace({0}, '\"', '\"\"') || '\"' END"
)


def _format(given: Sequence[Typed]) -> Typed:
    """``%s`` a text, ``%I`` a name, ``%L`` a text in quotes, ``%2$s`` the second argument."""
    template, values = written_text(given[0], "its template"), given[1:]
    parts: list[exp.Expr] = [quoted("")]
    at, taken = 0, 0
    for found in _FORMAT.finditer(template):
        parts.append(quoted(template[at : found.start()]))
        at = found.end()
        position, left, width, sign = found.groups()
        if sign == "%":
            parts.append(quoted("%"))
            continue
        taken = int(position) if position else taken + 1
        if not 1 <= taken <= len(values):
            raise Unfit(f"has no argument {taken} for {found[0]}")
        parts.append(_padded(_formatted(output_of(values[taken - 1]).tree, sign), left, width))
    if "%" in _FORMAT.sub("", template):
        raise Unfit(f"does not know '{template}': it knows %s, %I, %L, %1$s, %10s, %-10s and %%")
    parts.append(quoted(template[at:]))
    joined = " || ".join(f"{{{index}}}" for index in range(len(parts)))
    return typed(given[0], joined, parts, TEXT)


def _formatted(value: exp.Expr, sign: str) -> exp.Expr:
    if sign == "s":
        return filled("coalesce({0}, '')", [value])
    if sign == "L":
        return filled("coalesce({0}, 'NULL')", [_literal_text(value)])
    return filled(_IDENTIFIER, [value])


def _padded(value: exp.Expr, left: str | None, width: str | None) -> exp.Expr:
    if not width:
        return value
    pad = filled(f"repeat(' ', greatest({width} - length({{0}}), 0))", [value])
    return filled("{0} || {1}", [value, pad] if left else [pad, value])


def _literal_text(value: exp.Expr) -> exp.Expr:
    doubled = filled("replace({0}, {1}, {2})", [value, quoted("\\"), quoted("\\\\")])
    template = (
        "CASE WHEN contains({0}, {2}) THEN 'E''' || replace({1}, '''', '''''') || '''' ELSE '''' || "
        "replace({0}, '''', '''''') || '''' END"
    )
    return filled(template, [value, doubled, quoted("\\")])


def _quote_literal(given: Sequence[Typed]) -> Typed:
    value = given[0] if kind_of(given[0]) == TEXT else cast(given[0], TEXT)
    return value.of(_literal_text(value.tree), TEXT)


def _quote_nullable(given: Sequence[Typed]) -> Typed:
    return typed(given[0], "coalesce({0}, 'NULL')", [_quote_literal(given).tree], TEXT)


def _size(of_text: str, of_bytes: str) -> Build:
    def build(given: Sequence[Typed]) -> Typed:
        (value,) = given
        if kind_of(value) == BYTES:
            return typed(value, f"CAST({of_bytes} AS INTEGER)", [value.tree], INT)
        return typed(value, f"CAST({of_text} AS INTEGER)", [argument(value, "text").tree], INT)

    return build


def _substring(given: Sequence[Typed]) -> Typed:
    """From a position, as many characters; positions before the first count too. Or what a pattern matches."""
    if len(given) == 2 and (kind_of(given[1]) == TEXT):
        return patterns.matched_part(given)
    if kind_of(given[0]) == BYTES:
        value, part = given[0], "unhex(substring(hex({0}), 2 * %s - 1%s))"
        from_start, some = part % (_FIRST, ""), part % (_FIRST, f", 2 * {_SIZE}")
    else:
        value = argument(given[0], "text")
        from_start, some = f"substring({{0}}, {_FIRST})", f"substring({{0}}, {_FIRST}, {_SIZE})"
    start = argument(given[1], "int")
    if len(given) == 2:
        return typed(value, f"CASE WHEN {{1}} IS NOT NULL THEN {from_start} END", [value.tree, start.tree], value.type)
    size = argument(given[2], "int")
    template = f"CASE WHEN {{2}} >= 0 AND {{1}} IS NOT NULL THEN {some} END"
    return typed(value, template, [value.tree, start.tree, size.tree], value.type)


_FIRST = "greatest(CAST({1} AS BIGINT), 1)"
_SIZE = f"greatest(CAST({{1}} AS BIGINT) + {{2}} - {_FIRST}, 0)"
"""Where a part begins, and how long it is, that may be said to begin before the first position."""


_WORDS = (
    "array_to_string(list_transform(regexp_extract_all(lower({0}), '[\\p{L}\\p{N}]+|[^\\p{L}\\p{N}]+'), "
    "lambda w_: upper(w_[1]) || w_[2:]), '')"
)


def _encode(given: Sequence[Typed]) -> Typed:
    value, form = argument(given[0], "bytes"), written_text(given[1], "its form").lower()
    if form == "escape":
        return value.of(escaped(value.tree), TEXT)
    templates = {"hex": "lower(hex({0}))", "base64": "regexp_replace(to_base64({0}), {1}, {2}, 'g')"}
    if form not in templates:
        raise Unfit(f"knows the forms {', '.join(templates)}, escape, not '{form}'")
    # A line has 76 characters.
    return typed(value, templates[form], [value.tree, quoted("(.{76})"), quoted("\\1\n")], TEXT)


def _decode(given: Sequence[Typed]) -> Typed:
    value, form = argument(given[0], "text"), written_text(given[1], "its form").lower()
    if form == "escape":
        return value.of(unescaped(value.tree), BYTES)
    templates = {"hex": "unhex({0})", "base64": "from_base64(replace({0}, chr(10), ''))"}
    if form not in templates:
        raise Unfit(f"knows the forms {', '.join(templates)}, escape, not '{form}'")
    return typed(value, templates[form], [value.tree], BYTES)


def _digest(name: str, *, text: bool) -> Build:
    """Of the bytes; of a text those of its UTF-8 form."""

    def build(given: Sequence[Typed]) -> Typed:
        (value,) = given
        if not (is_unknown(value) or kind_of(value) in (TEXT, BYTES)):
            raise Unfit(f"takes a text or a bytea, not {name_of(kind_of(value))}")
        tree = value.tree if kind_of(value) == BYTES else filled("encode({0})", [cast(value, TEXT).tree])
        if text:
            return typed(value, f"{name}({{0}})", [tree], TEXT)
        return typed(value, f"unhex({name}({{0}}))", [tree], BYTES)

    return build


def _overlay(given: Sequence[Typed]) -> Typed:
    """As many characters as the new text has, or as many as are named, give way to it."""
    text, new, start = given[:3]
    size = given[3].tree if len(given) > 3 else filled("length({0})", [new.tree])
    template = (
        "CASE WHEN {2} > 0 THEN substring({0}, 1, {2} - 1) || {1} || CASE WHEN {2} + {3} < 1 THEN {0} "
        "ELSE substring({0}, {2} + {3}) END END"
    )
    return typed(text, template, [text.tree, new.tree, start.tree, size], TEXT)


_PAD = (
    "CASE WHEN {0} IS NULL OR {2} IS NULL THEN NULL WHEN {1} <= 0 THEN '' WHEN {2} = '' OR "
    'length({0}) >= {1} THEN "left"({0}, {1}) ELSE %s({0}, ' + sized("{1}") + ", {2}) END"
)
_SPLIT = (
    "CASE WHEN {2} = 0 THEN NULL WHEN {1} = '' THEN CASE WHEN {2} IN (1, -1) THEN {0} WHEN {0} IS "
    "NULL THEN NULL ELSE '' END ELSE split_part({0}, {1}, {2}) END"
)
_BYTE = (
    "CASE WHEN {1} >= 0 AND {1} < octet_length({0}) THEN "
    "CAST('0x' || substring(hex({0}), 2 * {1} + 1, 2) AS INTEGER) END"
)


def _pad(name: str, where: str) -> Row:
    filled_up = _PAD % name
    templates = (filled_up.replace("{2}", "' '"), filled_up)
    usage = f"{name}(text, length[, fill])"
    return Row(usage, f"filled up at its {where}, or cut off", templates, TEXT, takes="text int text")


_ANY_OF = "'(?:' || rtrim(regexp_replace(hex({1}), '(..)', '\\1|', 'g'), '|') || ')*'"
"""A pattern of the digits of some of these bytes; from an end of all digits it keeps to whole bytes."""
_ENDS = {
    "ltrim": f"regexp_replace(hex({{0}}), '^' || {_ANY_OF}, '')",
    "rtrim": f"regexp_replace(hex({{0}}), {_ANY_OF} || '$', '')",
}
_ENDS["trim"] = _ENDS["rtrim"].replace("hex({0})", _ENDS["ltrim"])


def _trim(name: str, side: str, engine: str) -> Row:
    def build(given: Sequence[Typed]) -> Typed:
        if kind_of(given[0]) == BYTES:
            signs = [argument(value, "bytes").tree for value in given[1:]]
            if not signs:
                raise Unfit("takes the bytes that go from a bytea, too")
            return typed(given[0], f"unhex({_ENDS[engine]})", [given[0].tree, *signs], BYTES)
        text, *signs = (argument(value, "text").tree for value in given)
        return typed(given[0], f"{engine}({{0}}, {'{1}' if signs else quoted(' ')})", [text, *signs], TEXT)

    meaning = f"without these signs or bytes, blanks where none are named, at {side}"
    return Row(f"{name}(text[, signs])", meaning, build)


FUNCTIONS: Table = (
    Row("lower(text)", "in small letters", "lower({0})", TEXT, takes="text"),
    Row("upper(text)", "in capital letters", "upper({0})", TEXT, takes="text"),
    Row("initcap(text)", "each word with a capital letter", _WORDS, TEXT, takes="text"),
    Row("concat(a, ..)", "one after another, NULLs left out", _concat),
    Row("concat_ws(separator, a, ..)", "with the separator between them, NULLs left out", _concat_ws,
        takes="text any"),
    Row("format(template, a, ..)", "the template with %s, %I and %L filled in", _format, arity=(1, None)),
    Row("length(text)", "how many characters", _size("length({0})", "octet_length({0})")),
    Row("char_length(text)", "how many characters", "length({0})", INT, takes="text", also="character_length"),
    Row("octet_length(text)", "how many bytes", _size("strlen({0})", "octet_length({0})")),
    Row("bit_length(text)", "how many bits", _size("8 * strlen({0})", "8 * octet_length({0})")),
    Row("substring(text, start[, length])", "a part of it, or what a pattern matches", _substring),
    Row("substr(text, start[, length])", "a part of it", _substring),
    Row("left(text, n)", "the first n; below 0 all but the last", '"left"({0}, {1})', TEXT, takes="text int"),
    Row("right(text, n)", "the last n; below 0 all but the first", '"right"({0}, {1})', TEXT, takes="text int"),
    _pad("lpad", "beginning"),
    _pad("rpad", "end"),
    _trim("btrim", "both ends", "trim"),
    _trim("ltrim", "its beginning", "ltrim"),
    _trim("rtrim", "its end", "rtrim"),
    Row("strpos(text, part)", "where the part begins, 0 where it is not", "strpos({0}, {1})", INT, takes="text"),
    Row("starts_with(text, part)", "whether it begins so", "starts_with({0}, {1})", BOOL, takes="text"),
    Row("replace(text, part, by)", "every place replaced",
        "CASE WHEN {1} = '' AND {2} IS NOT NULL THEN {0} ELSE replace({0}, {1}, {2}) END", TEXT, takes="text"),
    Row("translate(text, from, to)", "each sign of from by that of to", "translate({0}, {1}, {2})", TEXT,
        takes="text"),
    Row("overlay(text, new, start[, length])", "with a part of it replaced", _overlay, takes="text text int"),
    Row("repeat(text, n)", f"n times; NULL above {LARGEST:,}",
        "CASE WHEN {0} IS NOT NULL AND {1} < 0 THEN '' ELSE repeat({0}, " + sized("{1}") + ") END", TEXT,
        takes="text int"),
    Row("reverse(text)", "from its end", "reverse({0})", TEXT, takes="text"),
    Row("split_part(text, separator, n)", "the n-th part, below 0 from the end; '' where there is none", _SPLIT, TEXT,
        takes="text text int"),
    Row("ascii(text)", "the number of its first character, 0 of an empty text",
        "CASE WHEN {0} = '' THEN 0 ELSE unicode({0}) END", INT, takes="text"),
    Row("chr(n)", "the character of a number", "CASE WHEN {0} > 0 THEN chr({0}) END", TEXT, takes="int"),
    Row("quote_literal(text)", "in quotes, as a text is written", _quote_literal),
    Row("quote_nullable(text)", "in quotes, or NULL", _quote_nullable),
    Row("quote_ident(text)", "as a name is written", _IDENTIFIER, TEXT, takes="text",
        differs="words of SQL stand without quotes"),
    *patterns.FUNCTIONS,
    Row("encode(bytes, form)", "bytes as hex, base64 or escape", _encode),
    Row("decode(text, form)", "the bytes that hex, base64 or escape stands for", _decode),
    Row("md5(text)", "the MD5 digest in hexadecimal digits", _digest("md5", text=True)),
    Row("sha1(bytes)", "the SHA-1 digest", _digest("sha1", text=False)),
    Row("sha256(bytes)", "the SHA-256 digest", _digest("sha256", text=False)),
    Row("convert_from(bytes, 'utf8')", "the text of bytes",
        "CASE WHEN lower({1}) IN ('utf8', 'utf-8') THEN decode({0}) END", TEXT, takes="bytes text"),
    Row("convert_to(text, 'utf8')", "the bytes of a text",
        "CASE WHEN lower({1}) IN ('utf8', 'utf-8') THEN encode({0}) END", BYTES, takes="text"),
    Row("get_byte(bytes, n)", "the n-th byte, from 0", _BYTE, INT, takes="bytes int"),
    *byte_numbers.FUNCTIONS,
)  # fmt: skip
