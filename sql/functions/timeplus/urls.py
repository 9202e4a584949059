"""URLs and their parts; addresses of the Internet Protocol."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pyarrow as pa
from sqlglot import exp

from dovetail.sql.functions.registry import Build, Registry
from dovetail.sql.functions.timeplus.text import expect_text
from dovetail.sql.functions.typed import Typed, filled

_SCHEME = "(?:[a-zA-Z][a-zA-Z0-9+.-]*:)?//"
_HOST = f"^{_SCHEME}(?:[^/@?#]*@)?([^/:?#]*)"

_PARTS: Sequence[tuple[str, str, str]] = (
    ("protocol", "the protocol of a URL, in small letters", "^([a-zA-Z][a-zA-Z0-9+.-]*)://"),
    ("domain", "the host of a URL", _HOST),
    ("domain_without_www", "the host without www. in front", rf"^{_SCHEME}(?:[^/@?#]*@)?(?:www\.)?([^/:?#]*)"),
    ("path", "the path of a URL", f"^{_SCHEME}[^/?#]*([^?#]*)"),
    ("path_full", "the path with all that follows it", f"^{_SCHEME}[^/?#]*(/.*)"),
    ("query_string", "what stands between ? and #", r"\?([^#]*)"),
    ("fragment", "what stands after #", "#(.*)"),
    ("query_string_and_fragment", "what stands after ?", r"[?](.*)"),
)
"""A part of a URL is the first group of a pattern; '' where it is not there."""

_CUTS: Sequence[tuple[str, str, str, str]] = (
    ("cut_www", "without www. in front of the host", rf"^({_SCHEME}(?:[^/@?#]*@)?)www\.", r"\1"),
    ("cut_query_string", "without ? and what stands up to #", r"\?[^#]*", ""),
    ("cut_fragment", "without # and what follows", "#.*", ""),
    ("cut_query_string_and_fragment", "without ? and what follows", "[?].*", ""),
)
_IPV4 = r"^(?:(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])[.]){3}(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])$"
_QUERY = r"[?]([^#]*)"


def _extracted(pattern: str, arguments: Sequence[Typed]) -> exp.Expr:
    expect_text(arguments, 0)
    return filled("regexp_extract({0}, {1}, 1)", [arguments[0].tree, exp.Literal.string(pattern)])


def _cut(pattern: str, by: str) -> Build:
    def build(arguments: Sequence[Typed]) -> exp.Expr:
        expect_text(arguments, 0)
        trees = [arguments[0].tree, exp.Literal.string(pattern), exp.Literal.string(by)]
        return filled("regexp_replace({0}, {1}, {2})", trees)

    return build


def _protocol(arguments: Sequence[Typed]) -> exp.Expr:
    return filled("lower({0})", [_extracted(_PARTS[0][2], arguments)])


def _port(arguments: Sequence[Typed]) -> exp.Expr:
    """0, or the second argument, where there is none."""
    found = _extracted(rf"^{_SCHEME}(?:[^/@?#]*@)?[^/:?#]*:([0-9]+)", arguments)
    other = arguments[1].tree if len(arguments) > 1 else exp.Literal.number(0)
    trees = [arguments[0].tree, found, other]
    return filled("CASE WHEN {0} IS NOT NULL THEN coalesce(TRY_CAST({1} AS USMALLINT), {2}) END", trees)


def _top_level(arguments: Sequence[Typed]) -> exp.Expr:
    host = _extracted(_HOST, arguments)
    ends = [host, exp.Literal.string(_IPV4), exp.Literal.string(r"\.([^.]+)$")]
    return filled("CASE WHEN regexp_matches({0}, {1}) THEN '' ELSE regexp_extract({0}, {2}, 1) END", ends)


def _pairs(arguments: Sequence[Typed]) -> exp.Expr:
    """``name=value``, in their order."""
    expect_text(arguments, 0)
    whole = filled("coalesce({0}, '')", [arguments[0].tree])
    query = filled("regexp_extract({0}, {1}, 1)", [whole, exp.Literal.string(r"[?](.*)")])
    parts = filled("string_split_regex({0}, '[&#]')", [query])
    return filled("list_filter({0}, lambda each_: contains(each_, '='))", [parts])


def _names(arguments: Sequence[Typed]) -> exp.Expr:
    return filled("list_transform({0}, lambda each_: split_part(each_, '=', 1))", [_pairs(arguments)])


def _parameter(arguments: Sequence[Typed]) -> exp.Expr:
    """'' where there is none."""
    expect_text(arguments, 0, 1)
    name = filled("{0} || '='", [arguments[1].tree])
    found = filled("list_filter({0}, lambda each_: starts_with(each_, {1}))", [_pairs(arguments[:1]), name])
    value = filled("coalesce(substring({0}[1], length({1}) + 1), '')", [found, name])
    return filled("CASE WHEN {0} IS NOT NULL THEN {1} END", [arguments[0].tree, value])


def _without_parameter(arguments: Sequence[Typed]) -> exp.Expr:
    expect_text(arguments, 0, 1)
    name = filled("regexp_escape({0})", [arguments[1].tree])
    middle = filled("regexp_replace({0}, '([?&])' || {1} || '=[^&#]*&', '\\1')", [arguments[0].tree, name])
    last = filled("regexp_replace({0}, '[&]' || {1} || '=[^&#]*', '')", [middle, name])
    return filled("regexp_replace({0}, '([?])' || {1} || '=[^&#]*', '\\1')", [last, name])


# Addresses


def _is_ipv4(arguments: Sequence[Typed]) -> exp.Expr:
    expect_text(arguments, 0)
    return filled("regexp_matches({0}, {1})", [arguments[0].tree, exp.Literal.string(_IPV4)])


def _ipv4_number(arguments: Sequence[Typed]) -> exp.Expr:
    """NULL where it is no address."""
    terms = " + ".join(
        f"CAST(split_part({{0}}, '.', {place}) AS UBIGINT) * {256 ** (4 - place)}" for place in range(1, 5)
    )
    number = filled(f"CAST({terms} AS UINTEGER)", [arguments[0].tree])
    return filled("CASE WHEN {0} THEN {1} END", [_is_ipv4(arguments), number])


def _ipv4_number_or_zero(arguments: Sequence[Typed]) -> exp.Expr:
    found = _ipv4_number(arguments)
    return filled("CASE WHEN {0} IS NOT NULL THEN coalesce({1}, 0) END", [arguments[0].tree, found])


_OCTETS = " || '.' || ".join(f"CAST((CAST({{0}} AS UBIGINT) >> {shift}) & 255 AS VARCHAR)" for shift in (24, 16, 8, 0))


def register(registry: Registry) -> None:
    of_text = partial(registry.add, kind=pa.string(), group="URLs and addresses")
    add = partial(registry.add, group="URLs and addresses")
    for name, meaning, pattern in _PARTS:
        of_text(
            f"{name}(url)", meaning, _protocol if name == "protocol" else partial(_extracted, pattern), arity=(1, 1)
        )
    for name, meaning, pattern, by in _CUTS:
        of_text(f"{name}(url)", meaning, _cut(pattern, by), arity=(1, 1))
    of_text("top_level_domain(url)", "what stands after the last point of the host", _top_level, arity=(1, 1))
    add("port(url[, other])", "the port; other, or 0, where there is none", _port, pa.uint16(), arity=(1, 2))
    value = "the value of a parameter; '' where there is none"
    of_text("extract_url_parameter(url, name)", value, _parameter, arity=(2, 2))
    add("extract_url_parameters(url)", "the parameters, name=value", _pairs, arity=(1, 1))
    add("extract_url_parameter_names(url)", "the names of the parameters", _names, arity=(1, 1))
    of_text("cut_url_parameter(url, name)", "without this parameter", _without_parameter, arity=(2, 2))
    number = "the number of an IPv4 address"
    differs = "NULL where it is none, where ClickHouse stops the query"
    names = "ipv4_string_to_num_or_null"
    add("ipv4_string_to_num(text)", number, _ipv4_number, pa.uint32(), arity=(1, 1), aliases=names, differs=differs)
    zero = f"{number}; 0 where it is none"
    add("ipv4_string_to_num_or_default(text)", zero, _ipv4_number_or_zero, pa.uint32(), arity=(1, 1))
    of_text("ipv4_num_to_string(number)", "the IPv4 address of a number", _OCTETS)
    third = _OCTETS.rpartition(" || '.' || ")[0]
    of_text("ipv4_num_to_string_class_c(number)", "the same, xxx for its last part", f"{third} || '.xxx'")
    add("is_ipv4_string(text)", "whether it is an IPv4 address", _is_ipv4, pa.bool_(), arity=(1, 1))
