"""What the console completes, and when Enter runs a statement."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from dovetail.services.cli.console import is_finished
from dovetail.services.completion import NameCompleter
from dovetail.sql.catalog import Catalog, Query
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateStream

Complete = Callable[[str], list[str]]


@pytest.fixture
def completed() -> Complete:
    catalog = Catalog.open("sqlite://")
    for ddl in ("CREATE STREAM orders (order_id int64, price float64)", "CREATE STREAM clicks (url string)"):
        definition = parse_one(ddl)
        assert isinstance(definition, CreateStream)
        catalog.create(definition, now_ms=0)
    catalog.add_query(Query("priced", "", "", "", "priced"), now_ms=0)
    completer = NameCompleter(catalog)
    return lambda text: [found.text for found in completer.get_completions(Document(text), CompleteEvent())]


def test_keywords_keep_the_letter_case(completed: Complete) -> None:
    assert "select" in completed("sel")
    assert "SELECT" in completed("SEL")
    assert "INCLUDE" in completed("WAIT FOR priced TO INC")


def test_names_of_streams(completed: Complete) -> None:
    assert completed("SELECT * FROM ord")[0] == "orders"


def test_columns_of_the_streams_in_the_statement(completed: Complete) -> None:
    assert "order_id" in completed("SELECT * FROM orders WHERE ord")
    assert "price" not in completed("SELECT * FROM clicks WHERE pri")


def test_columns_behind_an_alias(completed: Complete) -> None:
    statement = "SELECT * FROM orders AS o JOIN clicks c ON o."
    assert completed(statement) == ["order_id", "price", "_tp_time"]
    assert completed("SELECT * FROM orders JOIN table(clicks) AS c ON c.") == ["url", "_tp_time"]


def test_dead_letters_of_a_query_and_their_columns(completed: Complete) -> None:
    assert completed("REPLAY priced.de") == ["dead_letter"]
    assert completed("REPLAY orders.de") == []
    assert completed("SELECT * FROM table(priced.dead_letter) AS d WHERE d.rea") == ["reason"]
    assert "source_topic" in completed("SELECT * FROM table(priced.dead_letter) WHERE sou")


def test_functions_of_both_dialects(completed: Complete) -> None:
    assert completed("SELECT to_start_of_ho") == ["to_start_of_hour("]
    assert completed("SELECT jsonb_pre") == ["jsonb_pretty("]
    assert "sum(" in completed("SELECT su")
    assert "dict_get(" in completed("SELECT dict_g")


def test_words_that_the_grammar_waits_for(completed: Complete) -> None:
    assert {"MATERIALIZED VIEW", "OR REPLACE", "STREAM"} <= set(completed("CREATE "))
    assert completed("CREATE MATERIALIZED V")[:2] == ["VIEW", "VALUES"]
    assert {"CASCADE", "WITH DATA"} <= set(completed("SELECT 1; DROP STREAM orders "))
    assert {"SELECT", "WAIT"} <= set(completed(""))
    assert "CREATE CLUSTER" not in completed("CREATE ")


def test_nothing_within_a_text(completed: Complete) -> None:
    assert completed("SELECT 'ord") == []


def test_an_alias_that_is_named_before_from() -> None:
    catalog = Catalog.open("sqlite://")
    definition = parse_one("CREATE STREAM orders (order_id int64)")
    assert isinstance(definition, CreateStream)
    catalog.create(definition, now_ms=0)
    begun = Document("SELECT o. FROM orders AS o", cursor_position=9)
    assert next(found.text for found in NameCompleter(catalog).get_completions(begun, CompleteEvent())) == "order_id"


def test_settings(completed: Complete) -> None:
    assert "join_max_buffered_bytes" in completed("SELECT 1 SETTINGS join_max")


@pytest.mark.parametrize(
    ("text", "finished"),
    [
        ("SELECT 1;", True),
        ("SELECT 1", False),
        ("SELECT ';", False),
        ("SELECT 1; -- more", True),
        ("SHOW STREAMS;\n", True),
        ("", True),
        ("\\q", True),
        ("help", True),
        ("help;", True),
    ],
)
def test_enter_runs_what_is_complete(text: str, finished: bool) -> None:
    assert is_finished(Document(text)) is finished


def test_enter_in_the_middle_begins_a_line() -> None:
    assert not is_finished(Document("SELECT 1;", cursor_position=3))
