"""Which joins have a budget of rows for each key, and what is refused instead of being run without one."""

from __future__ import annotations

import pytest

from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.joins.dataflow.ports import Ingest
from dovetail.joins.operators.bidirectional import BidirectionalSpec
from dovetail.joins.operators.multiway import MultiwaySpec
from tests.sql.world import World

DDL = (
    "CREATE STREAM clicks (k int, page string)",
    "CREATE STREAM views (k int, page string)",
    "CREATE STREAM stock (k int, shelf int) SETTINGS mode = 'changelog'",
    "CREATE MUTABLE STREAM prices (k int, price int) PRIMARY KEY k",
    "CREATE MUTABLE STREAM goods (k int, id int, name string) PRIMARY KEY (k, id)",
    "CREATE STREAM kept (k int, v int) PRIMARY KEY k SETTINGS mode = 'changelog_kv'",
    "CREATE MATERIALIZED VIEW shelved AS SELECT g.k AS k, t.shelf AS w FROM stock AS t JOIN goods AS g ON t.k = g.k",
)
TWO = "SELECT c.page AS page FROM clicks AS c JOIN "


def budgets(sql: str, **settings: int | str | bool) -> list[tuple[Ingest, int | None]]:
    given = {"max_fan_out": 5, "max_fan_out_action": "dead_letter", **settings}
    [node] = [
        one.operator
        for one in World.of(*DDL).plan(sql, **given).dataflow.nodes
        if isinstance(one.operator, BidirectionalSpec | MultiwaySpec)
    ]
    return [(port.ingest, port.max_rows_per_key) for port in node.ports]


@pytest.mark.parametrize(
    ("sql", "ingests"),
    [
        (f"{TWO} views AS v ON c.k = v.k", [Ingest.APPEND, Ingest.APPEND]),
        ("SELECT s.shelf FROM stock AS s LEFT JOIN goods AS g ON s.k = g.k", [Ingest.CHANGELOG, Ingest.UPSERT]),
        ("SELECT s.shelf FROM stock AS s JOIN shelved AS p ON s.k = p.k", [Ingest.CHANGELOG, Ingest.CHANGELOG]),
        (
            "SELECT s.shelf FROM stock AS s JOIN goods AS g ON s.k = g.k JOIN prices AS p ON g.k = p.k",
            [Ingest.CHANGELOG, Ingest.UPSERT, Ingest.UPSERT],
        ),
    ],
)
def test_each_side_that_is_records_has_the_budget(sql: str, ingests: list[Ingest]) -> None:
    assert budgets(sql) == [(ingest, 5) for ingest in ingests]


def test_by_default_none_has_one() -> None:
    assert budgets(f"{TWO} views AS v ON c.k = v.k", max_fan_out_action="warn") == [(Ingest.APPEND, None)] * 2


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (f"{TWO} (SELECT k, count() AS n FROM views GROUP BY k) AS v ON c.k = v.k", "no budget of rows"),
        ("SELECT s.shelf FROM stock AS s JOIN goods AS g ON s.k = length(g.name)", "move between keys"),
        (
            "SELECT s.shelf FROM stock AS s JOIN (SELECT k, count() AS n FROM views GROUP BY k) AS v ON s.k = v.k",
            "not the records of a stream, but what Aggregate makes of them",
        ),
        ("SELECT s.shelf FROM stock AS s JOIN kept AS x ON s.k = x.k", "of kind changelog_kv"),
        (f"{TWO} clicks AS d ON c.k = d.k", "is read 2 times"),
        (f"{TWO} prices AS p ON c.k = p.k", "has no budget of rows for a key"),
        ("SELECT k FROM clicks", "no join of this query keeps rows by key"),
    ],
)
def test_what_could_not_be_refused_as_one_record_is_refused_as_a_query(sql: str, message: str) -> None:
    with pytest.raises(Unsupported, match=message) as refused:
        budgets(sql)
    assert refused.value.fix


def test_an_action_without_a_budget_is_refused() -> None:
    with pytest.raises(SqlError, match="there is no budget to go by"):
        World.of(*DDL).plan(f"{TWO} views AS v ON c.k = v.k", max_fan_out_action="dead_letter")
    with pytest.raises(SqlError, match="max_fan_out_action cannot be 'drop'"):
        World.of(*DDL).plan(f"{TWO} views AS v ON c.k = v.k", max_fan_out_action="drop")
