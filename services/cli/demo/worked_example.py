"""The worked example of Timeplus' page on bidirectional joins: two mutable streams, and what each INSERT changes."""

from __future__ import annotations

import pyarrow as pa

from dovetail.services.cli.show import ChangelogLines, Screen
from dovetail.services.session import Changelog, Live, Rows, Session
from dovetail.sql.syntax.parse import parse_one

STREAMS = (
    "CREATE MUTABLE STREAM left_mu (i int, k string, k1 string) PRIMARY KEY (k, k1)",
    "CREATE MUTABLE STREAM right_mu (ii int, kk string, kk1 string) PRIMARY KEY (kk, kk1)",
)
QUERY = "SELECT i, k, k1, ii, kk, kk1, _tp_delta FROM left_mu JOIN right_mu ON left_mu.k = right_mu.kk EMIT CHANGELOG"
Row = tuple[int, str, str, int, str, str, int]
STEPS: tuple[tuple[tuple[str, ...], tuple[Row, ...]], ...] = (
    (
        (
            "INSERT INTO left_mu(i, k, k1) VALUES (1, 'a', 'b')",
            "INSERT INTO right_mu(ii, kk, kk1) VALUES (11, 'a', 'bb')",
        ),
        ((1, "a", "b", 11, "a", "bb", 1),),
    ),
    (
        ("INSERT INTO left_mu(i, k, k1) VALUES (2, 'a', 'b')",),
        ((1, "a", "b", 11, "a", "bb", -1), (2, "a", "b", 11, "a", "bb", 1)),
    ),
    (
        ("INSERT INTO right_mu(ii, kk, kk1) VALUES (22, 'a', 'bb')",),
        ((2, "a", "b", 11, "a", "bb", -1), (2, "a", "b", 22, "a", "bb", 1)),
    ),
)
"""Statements, and the changes that the page shows after them."""
TOTALS = """\
SELECT count(), min(i), max(i), avg(i), min(ii), max(ii), avg(ii)
FROM table(left_mu) AS left_mu JOIN table(right_mu) AS right_mu ON left_mu.k = right_mu.kk"""
TOTALS_ROW = (1, 2, 2, 2.0, 22, 22, 22.0)


def run(session: Session, screen: Screen) -> bool:
    """Whether every step changed what the page says."""
    screen.title("Two mutable streams, joined both ways")
    for statement in STREAMS:
        screen.note(f"> {statement}")
        session.run(statement)
    screen.note(f"> {QUERY}")
    live = session.execute(parse_one(QUERY))
    assert isinstance(live, Live)
    with live.changelog as changelog:
        holds = _steps(session, screen, changelog)
    return _totals(session, screen) and holds


def _steps(session: Session, screen: Screen, changelog: Changelog) -> bool:
    lines = screen.changelog(changelog.schema)
    expected: list[Row] = []
    for statements, changes in STEPS:
        for statement in statements:
            screen.note(f"> {statement}")
            session.run(statement)
        expected += changes
        _show_new(changelog, lines)
    found = [tuple(row.values()) for row in _all_rows(changelog).to_pylist()]
    return screen.verdict(found == expected, "the changelog is the one that the page prints")


def _show_new(changelog: Changelog, lines: ChangelogLines) -> None:
    """What the changelog holds beyond what was shown."""
    lines.add(_all_rows(changelog).slice(lines.count))


def _all_rows(changelog: Changelog) -> pa.Table:
    return pa.concat_tables([changelog.schema.empty_table(), *changelog.batches(until_idle=True)])


def _totals(session: Session, screen: Screen) -> bool:
    screen.note(f"> {TOTALS}")
    answer = session.execute(parse_one(TOTALS))
    assert isinstance(answer, Rows)
    screen.rows(answer.table)
    return screen.verdict(
        [tuple(row.values()) for row in answer.table.to_pylist()] == [TOTALS_ROW], "so are the totals"
    )
