"""Patterns over texts: LIKE, regular expressions (RE2, in both engines), separators, words.

An array is never NULL in ClickHouse: what gives one takes a text that is NULL for an empty one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

import pyarrow as pa
from sqlglot import exp

from dovetail.sql.functions.registry import Build, Registry, Unfit
from dovetail.sql.functions.timeplus.text import expect_text, written_text
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


def _trees(arguments: Sequence[Typed]) -> list[exp.Expr]:
    return [argument.tree for argument in arguments]


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
    def build(arguments: Sequence[Typed]) -> exp.Expr:
        expect_text(arguments, 0, 1)
        return liked(arguments[0], arguments[1], fold=fold, negated=negated)

    return build


# Regular expressions


def _groups(pattern: str) -> int:
    """How many groups of a pattern are counted, by the signs that open them: the engine alone compiles it."""
    outside = re.sub(r"\\.|\[\^?\]?[^\]]*+\]?", "", pattern, flags=re.DOTALL)
    return len(re.findall(r"\((?!\?)|\(\?P?<[a-zA-Z]", outside))


def _first_group(function: str) -> Build:
    """The first group of a match, the whole match where the pattern has no group."""

    def build(arguments: Sequence[Typed]) -> exp.Expr:
        expect_text(arguments, 0)
        group = 1 if _groups(written_text(arguments[1], "the pattern")) else 0
        text = "coalesce({0}, '')" if function == "regexp_extract_all" else "{0}"
        return filled(f"{function}({text}, {{1}}, {group})", _trees(arguments))

    return build


def _all_groups(of_match: bool) -> Build:
    """An array of arrays: one for each match, or one for each group."""

    def build(arguments: Sequence[Typed]) -> exp.Expr:
        expect_text(arguments, 0)
        groups = _groups(written_text(arguments[1], "the pattern"))
        if not groups:
            raise Unfit("takes a pattern with groups")
        found = [f"regexp_extract_all(coalesce({{0}}, ''), {{1}}, {group})" for group in range(1, groups + 1)]
        if not of_match:
            return filled(f"[{', '.join(found)}]", _trees(arguments))
        row = ", ".join(f"{one}[CAST(each_ AS INTEGER)]" for one in found)
        return filled(f"list_transform(range(1, len({found[0]}) + 1), lambda each_: [{row}])", _trees(arguments))

    return build


def _groups_of_first(arguments: Sequence[Typed]) -> exp.Expr:
    expect_text(arguments, 0)
    groups = _groups(written_text(arguments[1], "the pattern"))
    text = "coalesce({0}, '')"
    row = ", ".join(f"regexp_extract({text}, {{1}}, {group})" for group in range(1, groups + 1))
    none = "CAST([] AS VARCHAR[])"
    return filled(f"CASE WHEN regexp_matches({text}, {{1}}) THEN [{row}] ELSE {none} END", _trees(arguments))


def _replaced(everywhere: bool) -> Build:
    flags = ", 'g'" if everywhere else ""

    def build(arguments: Sequence[Typed]) -> str:
        expect_text(arguments, 0, 1, 2)
        return f"regexp_replace({{0}}, {{1}}, {{2}}{flags})"

    return build


def _grok(arguments: Sequence[Typed]) -> exp.Expr:
    """A map from the fields of the pattern to what they match; empty where the pattern does not match."""
    expect_text(arguments, 0)
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
    expect_text(arguments, 0, 1)
    separator, text = arguments[0], arguments[1]
    none = "CAST([] AS VARCHAR[])"
    whole = filled("coalesce({0}, '')", [text.tree])
    parts = filled(
        f"CASE WHEN {{0}} = '' AND {{1}} = '' THEN {none} ELSE string_split({{1}}, {{0}}) END", [separator.tree, whole]
    )
    if len(arguments) == 3:
        return filled("CASE WHEN {1} > 0 THEN list_slice({0}, 1, {1}) ELSE {0} END", [parts, arguments[2].tree])
    return parts


def _split_by_regexp(arguments: Sequence[Typed]) -> str:
    expect_text(arguments, 0, 1)
    text = "coalesce({1}, '')"
    return f"CASE WHEN {{0}} = '' THEN string_split({text}, '') ELSE string_split_regex({text}, {{0}}) END"


def _runs_between(separators: str) -> str:
    """The parts between separators that have something in them."""
    return f"list_filter(string_split_regex(coalesce({{0}}, ''), '{separators}+'), lambda each_: each_ <> '')"


_NO_ALPHA = r"[\x00-\x20!-/:-@\[-`{-~]"
_NO_WORD = r"[^0-9A-Za-z\x80-\x{10FFFF}]"
_TOKENS = f"string_split_regex({{0}}, '{_NO_WORD}+')"


# Several searches at once


def _any_of(test: str) -> Build:
    def build(arguments: Sequence[Typed]) -> exp.Expr:
        return filled(f"len(list_filter({{1}}, lambda each_: {test})) + 0 * strlen({{0}}) > 0", _trees(arguments))

    return build


def _first_of(test: str) -> Build:
    """The place, from 1, of the first that is found; 0 where none is."""

    def build(arguments: Sequence[Typed]) -> exp.Expr:
        found = f"list_position(list_transform({{1}}, lambda each_: {test}), true)"
        return filled(f"coalesce({found}, 0 * strlen({{0}}))", _trees(arguments))

    return build


_MATCHES: Sequence[tuple[str, str, Build]] = (
    ("like(text, pattern)", "text LIKE pattern", _like()),
    ("not_like(text, pattern)", "text NOT LIKE pattern", _like(negated=True)),
    ("ilike(text, pattern)", "text ILIKE pattern: letter case aside", _like(fold=True)),
    ("not_ilike(text, pattern)", "text NOT ILIKE pattern", _like(fold=True, negated=True)),
    ("match(text, pattern)", "whether the pattern matches a part of it", lambda given: "regexp_matches({0}, {1}, 's')"),
    ("multi_search_any(text, parts)", "whether one of the parts stands in it", _any_of("contains({0}, each_)")),
    (
        "multi_search_any_case_insensitive(text, parts)",
        "the same, letter case aside",
        _any_of("contains(lower({0}), lower(each_))"),
    ),
    (
        "multi_match_any(text, patterns)",
        "whether one of the patterns matches",
        _any_of("regexp_matches({0}, each_, 's')"),
    ),
)


def register(registry: Registry) -> None:
    add = partial(registry.add, group="patterns")
    of_text = partial(registry.add, kind=pa.string(), group="patterns")
    count = partial(registry.add, kind=pa.uint64(), group="patterns")
    for usage, meaning, build in _MATCHES:
        add(usage, meaning, build, pa.bool_(), arity=(2, 2))
    found = "the first group of the first match, or the match; '' where there is none"
    of_text("extract(text, pattern)", found, _first_group("regexp_extract"), arity=(2, 2))
    every = "of every match the first group, or the match"
    add("extract_all(text, pattern)", every, _first_group("regexp_extract_all"), arity=(2, 2))
    matches = "for every match an array of its groups"
    names = "extract_all_groups_vertical"
    add("extract_all_groups(text, pattern)", matches, _all_groups(of_match=True), arity=(2, 2), aliases=names)
    across = "for every group an array of what it matches"
    add("extract_all_groups_horizontal(text, pattern)", across, _all_groups(of_match=False), arity=(2, 2))
    add("extract_groups(text, pattern)", "the groups of the first match", _groups_of_first, arity=(2, 2))
    groups = ["regexp_extract({0}, {1}, 1)", "regexp_extract({0}, {1}, {2})"]
    of_text(
        "regexp_extract(text, pattern[, group])", "a group of the first match, the first where none is named", groups
    )
    add("grok(text, pattern)", "a map from the fields of %{PATTERN:field} to what they match", _grok, arity=(2, 2))
    matched = "list_filter(regexp_extract_all({0}, {1}), lambda each_: each_ <> '')"
    count("count_matches(text, pattern)", "how many matches there are", f"len({matched})")
    folded = "list_filter(regexp_extract_all({0}, '(?i)' || {1}), lambda each_: each_ <> '')"
    count("count_matches_case_insensitive(text, pattern)", "the same, letter case aside", f"len({folded})")
    one, all_of_them = "the first match replaced; \\1 is its first group", "every match replaced"
    of_text("replace_regexp_one(text, pattern, by)", one, _replaced(everywhere=False), arity=(3, 3))
    names = "replace_regex regexp_replace"
    of_text(
        "replace_regexp_all(text, pattern, by)", all_of_them, _replaced(everywhere=True), arity=(3, 3), aliases=names
    )
    quoted = r"regexp_replace({0}, '([\\|(){}\[\]^$+*?.:-])', '\\\1', 'g')"
    of_text("regexp_quote_meta(text)", "a pattern that matches this text", quoted)
    add("split_by_char(separator, text[, most])", "the parts between the separators", _split, arity=(2, 3))
    add("split_by_string(separator, text[, most])", "the parts between; of '' the characters", _split, arity=(2, 3))
    add("split_by_regexp(pattern, text)", "the parts between the matches", _split_by_regexp, arity=(2, 2))
    add("split_by_whitespace(text)", "the parts between blanks", _runs_between(r"\s"))
    add("split_by_non_alpha(text)", "the parts between blanks and punctuation", _runs_between(_NO_ALPHA))
    add("tokens(text)", "the runs of letters and digits", _runs_between(_NO_WORD))
    add("alpha_tokens(text)", "the runs of letters", "regexp_extract_all(coalesce({0}, ''), '[A-Za-z]+')")
    add("has_token(text, token)", "whether a word of the text is the token", f"list_contains({_TOKENS}, {{1}})")
    words = f"list_contains({_TOKENS.replace('{0}', 'lower({0})')}, lower({{1}}))"
    add("has_token_case_insensitive(text, token)", "the same, letter case aside", words)
    starts = "range(1, greatest(length({0}) - {1} + 2, 1))"
    pieces = f"list_transform({starts}, lambda each_: substring({{0}}, each_, CAST({{1}} AS BIGINT)))"
    add("ngrams(text, n)", "the parts of n characters", pieces)
    first = "the place, from 1, of the first of them that is found; 0 where none is"
    count("multi_search_first_index(text, parts)", first, _first_of("contains({0}, each_)"), arity=(2, 2))
    count("multi_match_any_index(text, patterns)", first, _first_of("regexp_matches({0}, each_, 's')"), arity=(2, 2))
    place = "strlen(substring({0}, 1, strpos({0}, each_) - 1)) + 1"
    found = f"CASE WHEN contains({{0}}, each_) THEN {place} ELSE 0 END"
    places = f"list_transform({{1}}, lambda each_: CAST({found} AS UBIGINT))"
    add("multi_search_all_positions(text, parts)", "where each of them begins, in bytes from 1", places)
    least = f"coalesce(list_min(list_filter({places}, lambda each_: each_ > 0)), 0 * strlen({{0}}))"
    count(
        "multi_search_first_position(text, parts)",
        "where the first one begins, in bytes from 1; 0 where none is",
        least,
    )
    part = "split_part({0}, {1}, CAST({2} AS INTEGER))"
    of_text("split_part(text, separator, n)", "the n-th part, '' where there is none", part)
