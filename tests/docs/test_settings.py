"""The pages name every setting of a query and of a process, with default and help."""

from __future__ import annotations

import re

import pytest
from pydantic.fields import FieldInfo

from dovetail.runtime.settings import Settings
from dovetail.sql.query_settings import DURATION, SETTINGS, Setting
from dovetail.sql.stream_settings import STREAM_SETTINGS
from tests.docs.pages import DOC_PAGES, README, Page, code_of
from tests.paths import ROOT
from tests.test_layers import PRESENT

SETTINGS_PAGE = Page.of("docs/settings.md")
CONFIGURATION = Page.of("docs/configuration.md")
TYPES = {str: "text", int: "whole number", bool: "truth value"}
COMPUTED = {"jar_cache": "`~/.cache/dovetail/jars`"}
"""Defaults that are of the machine."""
SETTINGS_OF_A_PROCESS = {f"DOVETAIL_{name.upper()}" for name in Settings.model_fields}
OF_THE_CONTAINERS = set(re.findall(r"\$\{(DOVETAIL_\w+)", (ROOT / "docker-compose.yml").read_text()))
AMONG_PROCESSES = {code_of(row[0])[0] for row in CONFIGURATION.rows("variable", "set by", "meaning")}


def query_line(setting: Setting) -> tuple[str, ...]:
    values = " ".join(f"`{choice}`" for choice in setting.choices)
    return (f"`{setting.name}`", TYPES[setting.type], setting.unit, written(setting.default), values, setting.help)


def written(default: object) -> str:
    if default is None:
        return ""
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


def process_line(name: str, field: FieldInfo) -> tuple[str, ...]:
    default = COMPUTED.get(name) or ("unset" if field.default is None else f"`{field.default}`")
    return (f"`DOVETAIL_{name.upper()}`", default, field.description or "")


def test_the_page_has_all_settings_of_a_query() -> None:
    found = SETTINGS_PAGE.rows("setting", "type", "unit", "default", "values", "meaning")
    assert found == [query_line(setting) for setting in SETTINGS]


@pytest.mark.parametrize("setting", [setting for setting in SETTINGS if setting.unit == DURATION], ids=lambda s: s.name)
def test_the_page_of_time_names_what_is_a_length_of_time(setting: Setting) -> None:
    assert f"`{setting.name}`" in {row[0] for row in Page.of("docs/time.md").rows("setting", "default", "meaning")}


def test_the_page_of_time_has_no_setting_of_its_own() -> None:
    named = {code_of(row[0])[0] for row in Page.of("docs/time.md").rows("setting", "default", "meaning")}
    assert named <= {setting.name for setting in SETTINGS}


def test_a_setting_of_a_stream_is_one_that_the_code_reads() -> None:
    source = "".join(
        path.read_text() for layer in ("sql", "services", "changelog") for path in (ROOT / layer).rglob("*.py")
    )
    named = [name for row in SETTINGS_PAGE.rows("setting", "of", "meaning") for name in code_of(row[0])]
    assert [name for name in named if f'"{name}"' not in source] == []
    assert sorted(named) == sorted(setting.name for setting in STREAM_SETTINGS)


def test_the_page_has_all_settings_of_a_process() -> None:
    columns = ("setting", "default", "what it is")
    names = ("security", "schema-registry", "serve")
    pages = (*(Page.of(f"docs/{name}.md") for name in names), CONFIGURATION)
    found = [row for page in pages for row in page.rows(*columns)]
    assert found == [process_line(name, field) for name, field in Settings.model_fields.items()]


def test_every_variable_that_the_code_reads_is_on_the_page() -> None:
    written_out = {
        name
        for layer in PRESENT
        for path in (ROOT / layer).rglob("*.py")
        for name in re.findall(r"\bDOVETAIL_(?!SECRET_)[A-Z_]*[A-Z]", path.read_text())
    }
    assert written_out <= SETTINGS_OF_A_PROCESS | set(CONFIGURATION.code)


def test_a_variable_among_processes_is_one_that_the_code_has() -> None:
    source = "".join(
        path.read_text()
        for layer in PRESENT
        for path in (ROOT / layer).rglob("*")
        if path.suffix in (".py", "")
        if path.is_file()
    )
    assert [name for name in AMONG_PROCESSES if name not in source] == []


def test_the_variables_of_the_containers_are_named() -> None:
    assert OF_THE_CONTAINERS
    assert {*CONFIGURATION.code, *Page.of("docs/operations.md").code} >= OF_THE_CONTAINERS


@pytest.mark.parametrize("page", [README, *DOC_PAGES], ids=lambda page: page.name)
def test_every_variable_on_a_page_exists(page: Page) -> None:
    known = SETTINGS_OF_A_PROCESS | OF_THE_CONTAINERS | AMONG_PROCESSES
    assert set(re.findall(r"DOVETAIL_(?!SECRET_)[A-Z_]*[A-Z]", page.text)) <= known
