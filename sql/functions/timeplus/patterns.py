"""Patterns over texts: LIKE, regular expressions (RE2, in both engines), separators, words.

An array is never NULL in ClickHouse: what gives one takes a text that is NULL for an empty one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from dovetail.sql.functions.arguments import trees_of, written_text
from dovetail.sql.functions.registry import Build, Row, Table, Unfit
from dovetail.sql.functions.typed import Typed, filled

_GROK = {
    "WORD": r"\b\w+\b",
    "NUMBER": r"[+-]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)",
    "INT": r"[+-]?[0-9]+",
    "POSINT": r"[1-9][0-9]*",
    "NONNEGINT": r"[0-9]+",
    "DATA": r".*?",
    "GREEDYDATA": r".*",
    "NOTSPACE": r"\S+",
    "SPACE": r"\s*",
    "USERNAME": r"[a-zA-Z0-9._-]+",
    "USER": r"[a-zA-Z0-9._-]+",
    "IP": r"(?:[0-9]{1,3}\.){3}[0-9]{1,3}|[0-9A-Fa-f:]*:[0-9A-Fa-f:.]+",
    "IPV4": r"(?:[0-9]{1,3}\.){3}[0-9]{1,3}",
    "HOSTNAME": r"[0-9A-Za-z][0-9A-Za-z.-]*",
    "IPORHOST": r"[0-9A-Za-z][0-9A-Za-z.:-]*",
    "HOSTPORT": r"[0-9A-Za-z][0-9A-Za-z.-]*:[0-9]+",
    "PATH": r"(?:/[^\s?*]*)+",
    "UNIXPATH": r"(?:/[^\s?*]*)+",
    "URIPATHPARAM": r"/[^\s]*",
    "URI": r"[A-Za-z][A-Za-z0-9+.-]*://\S+",
    "UUID": r"[A-Fa-f0-9]{8}-(?:[A-Fa-f0-9]{4}-){3}[A-Fa-f0-9]{12}",
    "LOGLEVEL": r"(?i:trace|debug|notice|info|warn(?:ing)?|error|crit(?:ical)?|fatal|severe|alert|emerg(?:ency)?)",
    "TIMESTAMP_ISO8601": r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:?[0-9]{2}"
    r"(?::?[0-9]{2}(?:[.,][0-9]+)?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?",
    "HTTPDATE": r"[0-9]{2}/[A-Za-z]{3}/[0-9]{4}:[0-9]{2}:[0-9]{2}:[0-9]{2} [+-][0-9]{4}",
    "QUOTEDSTRING": r'"(?:[^"\\]|\\.)*"|' + r"'(?:[^'\\]|\\.)*'",
}
"""The patterns that ``%{NAME:field}`` may name, of those that come with grok."""


# LIKE


def liked(value: Typed, pattern: Typed, *, fold: bool = False, negated: bool = False) -> exp.Expr:
    """LIKE with ClickHouse's escapes: ``\\%``, ``\\_`` and ``\\\\``; a backslash before any other sign is itself."""
    if isinstance(pattern.literal, str):
        escaped: exp.Expr = exp.Literal.string(re.sub(r"\\(?![%_\\])|(\\.)", _doubled, pattern.literal))
    else:
        escaped = filled("regexp_replace({0}, '\\\\([^%_\\\\])', '\\\\\\\\\\1', 'g')", [pattern.tree])
    word = "ILIKE" if fold else "LIKE"
    tree = exp.Paren(this=filled(f"{{0}} {word} {{1}} ESCAPE '\\'", [value.tree, escaped]))
    return exp.Paren(this=exp.Not(this=tree)) if negated else tree


def _doubled(found: re.Match[str]) -> str:
    return found[1] or r"\\"


def _like(fold: bool = False, negated: bool = False) -> Build:
    return lambda given: liked(given[0], given[1], fold=fold, negated=negated)


# Regular expressions


def _groups(pattern: str) -> int:
    """How many groups of a pattern are counted, by the signs that open them: the engine alone compiles it."""
    outside = re.sub(r"\\.|\[\^?\]?[^\]]*+\]?", "", pattern, flags=re.DOTALL)
    return len(re.findall(r"\((?!\?)|\(\?P?<[a-zA-Z]", outside))


def _first_group(function: str) -> Build:
    """The first group of a match, the whole match where the pattern has no group."""

    def build(arguments: Sequence[Typed]) -> exp.Expr:
        group = 1 if _groups(written_text(arguments[1], "the pattern")) else 0
        text = "coalesce({0}, '')" if function == "regexp_extract_all" else "{0}"
        return filled(f"{function}({text}, {{1}}, {group})", trees_of(arguments))

    return build


def _all_groups(of_match: bool) -> Build:
    """An array of arrays: one for each match, or one for each group."""

    def build(arguments: Sequence[Typed]) -> exp.Expr:
        groups = _groups(written_text(arguments[1], "the pattern"))
        if not groups:
            raise Unfit("takes a pattern with groups")
        found = [f"regexp_extract_all(coalesce({{0}}, ''), {{1}}, {group})" for group in range(1, groups + 1)]
        if not of_match:
            return filled(f"[{', '.join(found)}]", trees_of(arguments))
        row = ", ".join(f"{one}[CAST(each_ AS INTEGER)]" for one in found)
        return filled(f"list_transform(range(1, len({found[0]}) + 1), lambda each_: [{row}])", trees_of(arguments))

    return build


def _groups_of_first(arguments: Sequence[Typed]) -> exp.Expr:
    groups = _groups(written_text(arguments[1], "the pattern"))
    text = "coalesce({0}, '')"
    row = ", ".join(f"regexp_extract({text}, {{1}}, {group})" for group in range(1, groups + 1))
    none = "CAST([] AS VARCHAR[])"
    return filled(f"CASE WHEN regexp_matches({text}, {{1}}) THEN [{row}] ELSE {none} END", trees_of(arguments))


def _grok(arguments: Sequence[Typed]) -> exp.Expr:
    """A map from the fields of the pattern to what they match; empty where the pattern does not match."""
    fields: list[str] = []

    def expanded(found: re.Match[str]) -> str:
        name, field = found[1], found[2]
        if name not in _GROK:
            raise Unfit(f"does not know %{{{name}}}; it knows {', '.join(_GROK)}")
        if field is None:
            return f"(?:{_GROK[name]})"
        fields.append(field)
        return f"({_GROK[name]})"

    pattern = re.sub(r"%\{(\w+)(?::(\w+))?\}", expanded, written_text(arguments[1], "the pattern"))
    if not fields:
        raise Unfit("takes a pattern with fields: %{IP:client} %{WORD:method}")
    names = ", ".join(f"'{field}'" for field in fields)
    values = ", ".join(f"regexp_extract({{0}}, {{1}}, {group})" for group in range(1, len(fields) + 1))
    trees = [arguments[0].tree, exp.Literal.string(pattern)]
    none = "map(CAST([] AS VARCHAR[]), CAST([] AS VARCHAR[]))"
    return filled(f"CASE WHEN regexp_matches({{0}}, {{1}}) THEN map([{names}], [{values}]) ELSE {none} END", trees)


# Parts


def _split(arguments: Sequence[Typed]) -> exp.Expr:
    separator, text = arguments[0], arguments[1]
    none = "CAST([] AS VARCHAR[])"
    whole = filled("coalesce({0}, '')", [text.tree])
    parts = filled(
        f"CASE WHEN {{0}} = '' AND {{1}} = '' THEN {none} ELSE string_split({{1}}, {{0}}) END", [separator.tree, whole]
    )
    if len(arguments) == 3:
        return filled("CASE WHEN {1} > 0 THEN list_slice({0}, 1, {1}) ELSE {0} END", [parts, arguments[2].tree])
    return parts


def _runs_between(separators: str) -> str:
    """The parts between separators that have something in them."""
    return f"list_filter(string_split_regex(coalesce({{0}}, ''), '{separators}+'), lambda each_: each_ <> '')"


_NO_ALPHA = r"[\x00-\x20!-/:-@\[-`{-~]"
_NO_WORD = r"[^0-9A-Za-z\x80-\x{10FFFF}]"
_TOKENS = f"string_split_regex({{0}}, '{_NO_WORD}+')"


# Several searches at once


def _any_of(test: str) -> str:
    return f"len(list_filter({{1}}, lambda each_: {test})) + 0 * strlen({{0}}) > 0"


def _first_of(test: str) -> str:
    """The place, from 1, of the first that is found; 0 where none is."""
    return f"coalesce(list_position(list_transform({{1}}, lambda each_: {test}), true), 0 * strlen({{0}}))"


_TEXT, _COUNT = pa.string(), pa.uint64()
_STANDS = "contains({0}, each_)"
_MATCHES = "regexp_matches({0}, each_, 's')"
_FOUND = "list_filter(regexp_extract_all({0}, %s), lambda each_: each_ <> '')"
_WHOLE_TEXT = "coalesce({1}, '')"
_STARTS = "range(1, greatest(length({0}) - {1} + 2, 1))"
_PLACE = "CASE WHEN contains({0}, each_) THEN strlen(substring({0}, 1, strpos({0}, each_) - 1)) + 1 ELSE 0 END"
_PLACES = f"list_transform({{1}}, lambda each_: CAST({_PLACE} AS UBIGINT))"
_FIRST = "the place, from 1, of the first of them that is found; 0 where none is"

FUNCTIONS: Table = (
    Row("like(text, pattern)", "text LIKE pattern", _like(), pa.bool_(), takes="text"),
    Row("not_like(text, pattern)", "text NOT LIKE pattern", _like(negated=True), pa.bool_(), takes="text"),
    Row("ilike(text, pattern)", "text ILIKE pattern: letter case aside", _like(fold=True), pa.bool_(), takes="text"),
    Row("not_ilike(text, pattern)", "text NOT ILIKE pattern", _like(fold=True, negated=True), pa.bool_(),
        takes="text"),
    Row("match(text, pattern)", "whether the pattern matches a part of it", "regexp_matches({0}, {1}, 's')",
        pa.bool_()),
    Row("multi_search_any(text, parts)", "whether it contains one of the parts", _any_of(_STANDS), pa.bool_()),
    Row("multi_search_any_case_insensitive(text, parts)", "the same, letter case aside",
        _any_of("contains(lower({0}), lower(each_))"), pa.bool_()),
    Row("multi_match_any(text, patterns)", "whether one of the patterns matches", _any_of(_MATCHES), pa.bool_()),
    Row("extract(text, pattern)", "the first group of the first match, or the match; '' where there is none",
        _first_group("regexp_extract"), _TEXT, takes="text any"),
    Row("extract_all(text, pattern)", "of every match the first group, or the match",
        _first_group("regexp_extract_all"), takes="text any"),
    Row("extract_all_groups(text, pattern)", "for every match an array of its groups", _all_groups(of_match=True),
        takes="text any", also="extract_all_groups_vertical"),
    Row("extract_all_groups_horizontal(text, pattern)", "for every group an array of what it matches",
        _all_groups(of_match=False), takes="text any"),
    Row("extract_groups(text, pattern)", "the groups of the first match", _groups_of_first, takes="text any"),
    Row("regexp_extract(text, pattern[, group])", "a group of the first match, the first where none is named",
        ("regexp_extract({0}, {1}, 1)", "regexp_extract({0}, {1}, {2})"), _TEXT),
    Row("grok(text, pattern)", "a map from the fields of %{PATTERN:field} to what they match", _grok,
        takes="text any"),
    Row("count_matches(text, pattern)", "how many matches there are", f"len({_FOUND % '{1}'})", _COUNT),
    Row("count_matches_case_insensitive(text, pattern)", "the same, letter case aside",
        "len(%s)" % (_FOUND % "'(?i)' || {1}"), _COUNT),
    Row("replace_regexp_one(text, pattern, by)", "the first match replaced; \\1 is its first group",
        "regexp_replace({0}, {1}, {2})", _TEXT, takes="text"),
    Row("replace_regexp_all(text, pattern, by)", "every match replaced", "regexp_replace({0}, {1}, {2}, 'g')", _TEXT,
        takes="text", also="replace_regex regexp_replace"),
    Row("regexp_quote_meta(text)", "a pattern that matches this text",
        r"regexp_replace({0}, '([\\|(){}\[\]^$+*?.:-])', '\\\1', 'g')", _TEXT),
    Row("split_by_char(separator, text[, most])", "the parts between the separators", _split, takes="text text any"),
    Row("split_by_string(separator, text[, most])", "the parts between; of '' the characters", _split,
        takes="text text any"),
    Row("split_by_regexp(pattern, text)", "the parts between the matches",
        f"CASE WHEN {{0}} = '' THEN string_split({_WHOLE_TEXT}, '') "
        f"ELSE string_split_regex({_WHOLE_TEXT}, {{0}}) END", takes="text"),
    Row("split_by_whitespace(text)", "the parts between blanks", _runs_between(r"\s")),
    Row("split_by_non_alpha(text)", "the parts between blanks and punctuation", _runs_between(_NO_ALPHA)),
    Row("tokens(text)", "the runs of letters and digits", _runs_between(_NO_WORD)),
    Row("alpha_tokens(text)", "the runs of letters", "regexp_extract_all(coalesce({0}, ''), '[A-Za-z]+')"),
    Row("has_token(text, token)", "whether a word of the text is the token", f"list_contains({_TOKENS}, {{1}})"),
    Row("has_token_case_insensitive(text, token)", "the same, letter case aside",
        f"list_contains({_TOKENS.replace('{0}', 'lower({0})')}, lower({{1}}))"),
    Row("ngrams(text, n)", "the parts of n characters",
        f"list_transform({_STARTS}, lambda each_: substring({{0}}, each_, CAST({{1}} AS BIGINT)))"),
    Row("multi_search_first_index(text, parts)", _FIRST, _first_of(_STANDS), _COUNT),
    Row("multi_match_any_index(text, patterns)", _FIRST, _first_of(_MATCHES), _COUNT),
    Row("multi_search_all_positions(text, parts)", "where each of them begins, in bytes from 1", _PLACES),
    Row("multi_search_first_position(text, parts)", "where the first one begins, in bytes from 1; 0 where none is",
        f"coalesce(list_min(list_filter({_PLACES}, lambda each_: each_ > 0)), 0 * strlen({{0}}))", _COUNT),
    Row("split_part(text, separator, n)", "the n-th part, '' where there is none",
        "split_part({0}, {1}, CAST({2} AS INTEGER))", _TEXT, takes="text text number"),
)  # fmt: skip
