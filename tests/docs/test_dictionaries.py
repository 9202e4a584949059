"""docs/dictionaries.md names every source, layout, option, setting and figure, each with its default."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import pyarrow as pa
import pytest

from dovetail.changelog.schema import Column
from dovetail.dictionaries.cache.cache_settings import CACHE_SETTINGS, OnError, read_settings
from dovetail.dictionaries.check import define
from dovetail.dictionaries.definition.definition import LayoutSpec, SourceSpec
from dovetail.dictionaries.definition.kinds import FORMATS, LAYOUTS, SOURCE_SETTINGS, SOURCES, SPELLINGS, TABLE_OR_QUERY
from dovetail.dictionaries.definition.options import Option, Parameter
from dovetail.sql.system_tables import DICTIONARIES
from tests.docs.pages import Page, code_of

PAGE = Page.of("docs/dictionaries.md")
SOURCE_ROWS = {code_of(row[0])[0].lower(): row[1] for row in PAGE.rows("source", "options, with their defaults")}
LAYOUT_ROWS = {
    kind.lower(): row[2]
    for row in PAGE.rows("layout", "keeps", "parameters, with their defaults")
    for kind in re.findall(r"`(\w+)\(\)`", row[0])
}
OF_A_TABLE = " ".join(row[0] for row in PAGE.rows("option", "meaning"))
[REFUSED] = re.findall(r"^Refused, since there is nothing to set: (.*?)\n\n", PAGE.text, re.MULTILINE | re.DOTALL)
_FORMS_OF_A_PASSWORD = ("password_env", "password_file")
_NAMED_WITH_LAYOUTS = ("lifetime(min a max b)", "lifetime")


def options_of(cell: str) -> dict[str, str]:
    """Option and default, as a cell gives them: ```PORT 3306` `USER` `PATH` (required)``."""
    spans = re.findall(r"`([^`]+)`( \(required\))?", cell)
    named = {span.lower(): ("required" if required else "") for span, required in spans}
    named = {span: required for span, required in named.items() if span not in _NAMED_WITH_LAYOUTS}
    return {span.split(" ")[0]: required or " ".join(span.split(" ")[1:]) for span, required in named.items()}


def declared(options: Iterable[Option]) -> dict[str, str]:
    """The same of the options as the code declares them."""
    return {
        option.name: "required" if option.required else shown(option.default)
        for option in options
        if option.name not in _FORMS_OF_A_PASSWORD and not option.refused
    }


def shown(default: Parameter | None) -> str:
    if default is None:
        return ""
    if isinstance(default, bool):
        return str(default).lower()
    return f"{default:.0f}" if isinstance(default, float) and default.is_integer() else str(default)


def test_the_page_has_all_sources_and_no_other() -> None:
    assert set(SOURCE_ROWS) == set(SOURCES)


@pytest.mark.parametrize("kind", SOURCES)
def test_a_source_has_these_options_and_defaults(kind: str) -> None:
    of_a_table = options_of(OF_A_TABLE) if kind in TABLE_OR_QUERY else {}
    assert options_of(SOURCE_ROWS[kind]) | of_a_table == declared(SOURCES[kind])
    assert ("those of a table" in SOURCE_ROWS[kind]) == (kind in TABLE_OR_QUERY)


@pytest.mark.parametrize(("spelling", "kind"), SPELLINGS.items())
def test_other_spellings_are_named(spelling: str, kind: str) -> None:
    [sentence] = re.findall(r"^.*are other spellings of.*$", PAGE.text, re.MULTILINE)
    assert {spelling.upper(), kind.upper()} <= set(code_of(sentence))


def test_the_formats_of_files_are_named() -> None:
    named = SOURCE_ROWS["file"].split(": ")[1].split(";")[0]
    assert tuple(named.lower().split(", ")) == FORMATS


def test_the_page_has_all_layouts_and_no_other() -> None:
    assert set(LAYOUT_ROWS) == set(LAYOUTS)


@pytest.mark.parametrize("kind", LAYOUTS)
def test_a_layout_has_these_parameters_and_defaults(kind: str) -> None:
    assert options_of(LAYOUT_ROWS[kind]) == declared(LAYOUTS[kind])


def test_the_options_that_are_refused_are_named() -> None:
    refused = {option.name.upper() for options in LAYOUTS.values() for option in options if option.refused}
    assert set(code_of(REFUSED)) == {*refused, "FLAT"}


@pytest.mark.parametrize(
    ("kind", "parameters", "option"),
    [("cache", {}, "size_in_cells"), ("hybrid_hash_cache", {"ttl": 60.0, "path": "p"}, "max_hot_key_count")],
)
def test_the_default_room_of_a_cache_is_the_one_declared(
    kind: str, parameters: Mapping[str, Parameter], option: str
) -> None:
    [room] = [declared_.default for declared_ in LAYOUTS[kind] if declared_.name == option]
    columns = (Column("id", pa.string()), Column("name", pa.string()))
    source = SourceSpec("sqlite", {"path": "shop.db", "table": "products"})
    assert read_settings(define("d", columns, ("id",), source, LayoutSpec(kind, parameters))).hot_keys == room


def test_the_page_has_all_settings_with_default_unit_and_help() -> None:
    expected = [
        (f"`{one.name}`", f"`{shown(one.default)}`" if one.default not in (None, "") else "", one.unit, one.help)
        for one in CACHE_SETTINGS
    ]
    assert PAGE.rows("setting", "default", "unit", "meaning") == expected


@pytest.mark.parametrize("name", [option.name for option in SOURCE_SETTINGS])
def test_the_settings_of_all_sources_are_named(name: str) -> None:
    assert name in PAGE.code


def test_the_page_has_all_answers_to_an_error() -> None:
    assert [code_of(row[0])[0] for row in PAGE.rows("`on_error`", "")] == list(OnError)


def test_the_page_has_all_figures_and_no_other() -> None:
    in_other_statements = {"name", "type", "key", "source", "lifetime_min", "lifetime_max"}
    named = {name for row in PAGE.rows("column", "meaning") for name in code_of(row[0])}
    assert named == set(DICTIONARIES.names) - in_other_statements
