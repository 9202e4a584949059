"""A word that is offered for one that is misspelt makes the statement one that can be read, or read further."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from dovetail.changelog.errors import SqlError
from dovetail.sql.syntax.parse import parse

STATEMENTS = (
    "SELECT a FROM o",
    "SELECT a FROM o WHERE a = 1",
    "SELECT a FROM o JOIN u ON o.a = u.a",
    "SELECT a FROM o WHERE a BETWEEN 1 AND 2",
    "SELECT a, count() FROM o GROUP BY a HAVING count() > 1",
    "SELECT a FROM o ORDER BY a LIMIT 5",
    "SELECT a FROM o EMIT CHANGELOG",
    "SELECT a FROM o SETTINGS output = 'append'",
    "WITH x AS (SELECT a FROM o) SELECT a FROM x",
    "CREATE STREAM s (a int) PRIMARY KEY a SETTINGS mode = 'versioned_kv'",
    "CREATE MUTABLE STREAM s (a int) PRIMARY KEY a",
    "CREATE MATERIALIZED VIEW v AS SELECT a FROM o",
    "CREATE TABLE t (a INT) APPEND ONLY",
    "CREATE SOURCE t (a INT)",
    "CREATE INDEX i ON t (a)",
    "INSERT INTO s VALUES (1)",
    "DELETE FROM s WHERE a = 1",
    "UPDATE s SET a = 1 WHERE a = 2",
    "SHOW STREAMS",
    "DESCRIBE s",
    "DROP STREAM s",
    "EXPLAIN SELECT a FROM o",
    "PAUSE q",
    "REPLAY v.dead_letter LIKE 'a' DRY RUN",
    "WAIT FOR v TO INCLUDE o[0]@1 TIMEOUT 5",
)


def misspelt() -> Iterator[tuple[str, str]]:
    """Each statement with two letters of each of its keywords exchanged, where that is no statement any more."""
    for statement in STATEMENTS:
        for found in re.finditer(r"[A-Z]{4,}", statement):
            word, middle = found[0], len(found[0]) // 2
            wrong = word[: middle - 1] + word[middle] + word[middle - 1] + word[middle + 1 :]
            text = statement[: found.start()] + wrong + statement[found.end() :]
            try:
                parse(text)
            except SqlError:
                yield text, word


@pytest.mark.parametrize(("text", "word"), list(misspelt()))
def test_the_word_that_was_meant_is_offered(text: str, word: str) -> None:
    with pytest.raises(SqlError) as fault:
        parse(text)
    assert re.search(rf"did you mean [A-Z ]*\b{word}\b", fault.value.fix)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("DELECT a FROM o", "SELECT"),
        ("DELECT FROM o WHERE a = 1", "DELETE"),
        ("SELECT a FORM o", "FROM"),
        ("SELET a FORM o", "SELECT"),
        ("SELECT 1 FROM a; SELECT a FORM o", "FROM"),
    ],
)
def test_of_words_that_are_alike_that_which_can_be_read_is_offered(text: str, word: str) -> None:
    with pytest.raises(SqlError, match=word):
        parse(text)


@pytest.mark.parametrize("text", ["SELECT a FROM t o p q", "SELECT a FROM o WHERE a = 1 om", "SELECT a FROM t x ont"])
def test_no_word_is_offered_that_helps_nothing(text: str) -> None:
    with pytest.raises(SqlError) as fault:
        parse(text)
    assert "did you mean" not in fault.value.fix
