"""Words of psql in the console: a statement, or an answer with what serves in their place, and no wait for ``;``."""

from __future__ import annotations

import pytest
from prompt_toolkit.document import Document

from dovetail.changelog.errors import SqlError
from dovetail.services.cli.console import is_finished, mode_of, spelled_out
from dovetail.services.cli.shell.backslash import STATEMENTS, refuse_backslash
from dovetail.sql.syntax.parse import parse

KNOWN = (*STATEMENTS, "\\?", "\\h", "\\q", "\\mode table")
UNKNOWN = (
    "\\l",
    "\\x",
    "\\timing on",
    "\\i a.sql",
    "\\c other",
    "\\e",
    "\\set a 1",
    "\\nothing",
    "\\",
    "\\copy t FROM 'x'",
)


@pytest.mark.parametrize("text", [*KNOWN, *UNKNOWN, *(f" {text} ;" for text in (*KNOWN, *UNKNOWN))])
def test_enter_runs_a_word_with_a_backslash(text: str) -> None:
    assert is_finished(Document(text))


@pytest.mark.parametrize("text", STATEMENTS)
def test_a_word_of_psql_is_statements(text: str) -> None:
    refuse_backslash(spelled_out(text))
    assert parse(spelled_out(text))
    assert mode_of(text) is None


@pytest.mark.parametrize("text", UNKNOWN)
def test_what_the_console_has_not_is_answered(text: str) -> None:
    with pytest.raises(SqlError, match="the console has no") as refused:
        refuse_backslash(spelled_out(text))
    assert refused.value.fix
    assert refused.value.where == text


def test_a_near_miss_is_offered() -> None:
    with pytest.raises(SqlError) as refused:
        refuse_backslash("\\mod")
    assert 'did you mean "\\mode"?' in refused.value.fix


def test_a_backslash_within_a_statement_is_none_of_these() -> None:
    refuse_backslash("SELECT '\\d';")
    assert not is_finished(Document("SELECT '\\d'"))
