"""URLs and their parts; addresses of the Internet Protocol."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pyarrow as pa
from sqlglot import exp

from dovetail.sql.functions.registry import Build, Row, Table
from dovetail.sql.functions.typed import Typed, filled

_SCHEME = "(?:[a-zA-Z][a-zA-Z0-9+.-]*:)?//"
_HOST = f"^{_SCHEME}(?:[^/@?#]*@)?([^/:?#]*)"

_IPV4 = r"^(?:(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])[.]){3}(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])$"


def _extracted(pattern: str, arguments: Sequence[Typed]) -> exp.Expr:
    """A part of a URL is the first group of a pattern; '' where it is not there."""
    return filled("regexp_extract({0}, {1}, 1)", [arguments[0].tree, exp.Literal.string(pattern)])


def _part(pattern: str) -> Build:
    return partial(_extracted, pattern)


def _cut(pattern: str, by: str = "") -> Build:
    constants = [exp.Literal.string(pattern), exp.Literal.string(by)]
    return lambda arguments: filled("regexp_replace({0}, {1}, {2})", [arguments[0].tree, *constants])


def _protocol(arguments: Sequence[Typed]) -> exp.Expr:
    return filled("lower({0})", [_extracted("^([a-zA-Z][a-zA-Z0-9+.-]*)://", arguments)])


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
    whole = filled("coalesce({0}, '')", [arguments[0].tree])
    query = filled("regexp_extract({0}, {1}, 1)", [whole, exp.Literal.string(r"[?](.*)")])
    parts = filled("string_split_regex({0}, '[&#]')", [query])
    return filled("list_filter({0}, lambda each_: contains(each_, '='))", [parts])


def _names(arguments: Sequence[Typed]) -> exp.Expr:
    return filled("list_transform({0}, lambda each_: split_part(each_, '=', 1))", [_pairs(arguments)])


def _parameter(arguments: Sequence[Typed]) -> exp.Expr:
    """'' where there is none."""
    name = filled("{0} || '='", [arguments[1].tree])
    found = filled("list_filter({0}, lambda each_: starts_with(each_, {1}))", [_pairs(arguments[:1]), name])
    value = filled("coalesce(substring({0}[1], length({1}) + 1), '')", [found, name])
    return filled("CASE WHEN {0} IS NOT NULL THEN {1} END", [arguments[0].tree, value])


def _without_parameter(arguments: Sequence[Typed]) -> exp.Expr:
    name = filled("regexp_escape({0})", [arguments[1].tree])
    middle = filled("regexp_replace({0}, '([?&])' || {1} || '=[^&#]*&', '\\1')", [arguments[0].tree, name])
    last = filled("regexp_replace({0}, '[&]' || {1} || '=[^&#]*', '')", [middle, name])
    return filled("regexp_replace({0}, '([?])' || {1} || '=[^&#]*', '\\1')", [last, name])


# Addresses


def _is_ipv4(arguments: Sequence[Typed]) -> exp.Expr:
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


_THREE_OCTETS = _OCTETS.rpartition(" || '.' || ")[0]

FUNCTIONS: Table = (
    Row("protocol(url)", "the protocol of a URL, in small letters", _protocol, pa.string(), takes="text"),
    Row("domain(url)", "the host of a URL", _part(_HOST), pa.string(), takes="text"),
    Row("domain_without_www(url)", "the host without www. in front",
        _part(rf"^{_SCHEME}(?:[^/@?#]*@)?(?:www\.)?([^/:?#]*)"), pa.string(), takes="text"),
    Row("path(url)", "the path of a URL", _part(f"^{_SCHEME}[^/?#]*([^?#]*)"), pa.string(), takes="text"),
    Row("path_full(url)", "the path with all that follows it", _part(f"^{_SCHEME}[^/?#]*(/.*)"), pa.string(),
        takes="text"),
    Row("query_string(url)", "what stands between ? and #", _part(r"\?([^#]*)"), pa.string(), takes="text"),
    Row("fragment(url)", "what stands after #", _part("#(.*)"), pa.string(), takes="text"),
    Row("query_string_and_fragment(url)", "what stands after ?", _part(r"[?](.*)"), pa.string(), takes="text"),
    Row("cut_www(url)", "without www. in front of the host", _cut(rf"^({_SCHEME}(?:[^/@?#]*@)?)www\.", r"\1"),
        pa.string(), takes="text"),
    Row("cut_query_string(url)", "without ? and what stands up to #", _cut(r"\?[^#]*"), pa.string(), takes="text"),
    Row("cut_fragment(url)", "without # and what follows", _cut("#.*"), pa.string(), takes="text"),
    Row("cut_query_string_and_fragment(url)", "without ? and what follows", _cut("[?].*"), pa.string(), takes="text"),
    Row("top_level_domain(url)", "what stands after the last point of the host", _top_level, pa.string(),
        takes="text"),
    Row("port(url[, other])", "the port; other, or 0, where there is none", _port, pa.uint16(), takes="text any"),
    Row("extract_url_parameter(url, name)", "the value of a parameter; '' where there is none", _parameter,
        pa.string(), takes="text"),
    Row("extract_url_parameters(url)", "the parameters, name=value", _pairs, takes="text"),
    Row("extract_url_parameter_names(url)", "the names of the parameters", _names, takes="text"),
    Row("cut_url_parameter(url, name)", "without this parameter", _without_parameter, pa.string(), takes="text"),
    Row("ipv4_string_to_num(text)", "the number of an IPv4 address", _ipv4_number, pa.uint32(), takes="text",
        also="ipv4_string_to_num_or_null", differs="NULL if it is not one, where ClickHouse stops the query"),
    Row("ipv4_string_to_num_or_default(text)", "the number of an IPv4 address; 0 if it is not one",
        _ipv4_number_or_zero, pa.uint32(), takes="text"),
    Row("ipv4_num_to_string(number)", "the IPv4 address of a number", _OCTETS, pa.string(), takes="number"),
    Row("ipv4_num_to_string_class_c(number)", "the same, xxx for its last part", f"{_THREE_OCTETS} || '.xxx'",
        pa.string(), takes="number"),
    Row("is_ipv4_string(text)", "whether it is an IPv4 address", _is_ipv4, pa.bool_(), takes="text"),
)  # fmt: skip
