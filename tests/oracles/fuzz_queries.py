"""Whole queries at random: as a view that runs, and asked at once, beside the answers of PostgreSQL.

    python -m tests.oracles.fuzz_queries --seed 7 --count 1000

Of each case the tables change step by step; after each step the rows of the view, and those of the query asked at
once, are PostgreSQL's. Views take in some records at a time, and begin again from what they have made durable. What
differs is made smaller for as long as it differs, and printed as statements.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

import psycopg
import sqlglot
import typer
from sqlglot import exp

from dovetail.changelog.errors import Domain, DovetailError
from dovetail.sql.syntax.risingwave import RisingWaveQueries
from dovetail.sql.syntax.rules import Rules
from tests.oracles.answers import ours, theirs
from tests.oracles.postgres import postgres
from tests.oracles.whole_queries import TABLES, Queries, change, created
from tests.sqllogictest.memory import MemorySession

_STEPS = 4
_VIEW = "view_of_case"
_TRIES = 300
"""How often a case is made smaller, at the most."""


@dataclass(frozen=True)
class Case:
    """``before`` the view is created, and the ``steps`` after it: changes of the tables. ``batch``: how many records of
    a topic the view takes in at once; ``restarts``: the steps after which it begins again.
    """

    query: str
    before: tuple[str, ...]
    steps: tuple[tuple[str, ...], ...]
    batch: int | None = None
    restarts: frozenset[int] = frozenset()

    @staticmethod
    def of(chance: random.Random) -> Case:
        query, keys = Queries(chance).query().text, {name: set[str]() for name in TABLES}

        def changes() -> tuple[str, ...]:
            return tuple(change(chance, keys) for _ in range(chance.randrange(1, 6)))

        return Case(
            query,
            changes() if chance.random() < 0.7 else (),
            tuple(changes() for _ in range(_STEPS)),
            chance.choice([None, None, 1, 2]),
            frozenset(chance.sample(range(_STEPS), chance.choice([0, 1]))),
        )

    @property
    def script(self) -> str:
        """The statements, to be run by hand."""
        steps = [line for step in self.steps for line in step]
        view = f"CREATE MATERIALIZED VIEW {_VIEW} AS {self.query}"
        return ";\n".join([*created(), *self.before, view, *steps, f"SELECT * FROM {_VIEW}", self.query]) + ";"


@dataclass(frozen=True)
class Difference:
    """Where an answer is another: as a view, or asked at once, after the step of this number."""

    case: Case
    form: str
    step: int
    got: object
    want: object

    def __str__(self) -> str:
        return f"{self.form}, after step {self.step}\n  got  {self.got}\n  want {self.want}\n{self.case.script}"


@dataclass
class Report:
    """What came of the cases: ``refused`` by the first words of the reason."""

    asked: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)

    def __str__(self) -> str:
        refused = "".join(f"\n{count:6} {reason}" for reason, count in self.refused.most_common())
        counts = f"{self.asked} queries, {self.refused.total()} refused, {len(self.differences)} differ"
        return counts + refused + "".join(f"\n\n{one}" for one in self.differences)


class Refused(Exception):
    """A query that is not taken, with the first words of the reason."""


def difference(case: Case, connection: psycopg.Connection) -> Difference | None:
    """The first one; None where all answers are equal. Raises Refused; AssertionError for what PostgreSQL refuses."""
    for name in TABLES:
        connection.execute(f"TRUNCATE {name}".encode())
    session = MemorySession(Rules.RISINGWAVE, case.batch)
    try:
        for statement in created():
            session.execute(statement)
        return _run(case, session, connection)
    finally:
        session.close()


def _run(case: Case, session: MemorySession, connection: psycopg.Connection) -> Difference | None:
    def changed(statements: Sequence[str]) -> None:
        for statement in statements:
            session.execute(statement)
            connection.execute(statement.encode())

    changed(case.before)
    try:
        session.execute(f"CREATE MATERIALIZED VIEW {_VIEW} AS {case.query}")
    except DovetailError as error:
        if error.domain is not Domain.USER:
            return Difference(case, "planned", 0, f"{type(error).__name__}: {error}", "an answer")
        raise Refused(" ".join(error.what.split()[:7])) from None
    for number, step in enumerate(((), *case.steps)):
        changed(step)
        if number - 1 in case.restarts:
            session.restart(_VIEW)
        want = theirs(connection, case.query)
        found: object
        for form in ("as a view", "asked at once"):
            try:
                table = session.rows_of(_VIEW) if form == "as a view" else session.execute(case.query)
                found = ours(table) if table is not None else "no rows"
            except Exception as error:  # noqa: BLE001 - whatever it is, it is not the answer
                found = f"{type(error).__name__}: {error}"
            if found != want:
                return Difference(case, form, number, found, want)
    return None


def smaller(found: Difference, connection: psycopg.Connection) -> Difference:
    """The difference of a case from which nothing more can be left out."""
    tries = 0
    while tries < _TRIES:
        for case in _reductions(found.case):
            tries += 1
            try:
                left = difference(case, connection)
            except (Refused, psycopg.Error):
                continue
            if left is not None and left.form == found.form:
                found = left
                break
        else:
            return found
    return found


def _reductions(case: Case) -> Iterator[Case]:
    if case.restarts:
        yield replace(case, restarts=frozenset())
    for at in range(len(case.steps) - 1, -1, -1):
        yield replace(case, steps=(*case.steps[:at], *case.steps[at + 1 :]), restarts=frozenset())
    for query in _shorter(case.query):
        yield replace(case, query=query)
    for at in range(len(case.before)):
        yield replace(case, before=(*case.before[:at], *case.before[at + 1 :]))
    for at, step in enumerate(case.steps):
        for of in range(len(step)):
            shorter = (*step[:of], *step[of + 1 :])
            yield replace(case, steps=(*case.steps[:at], shorter, *case.steps[at + 1 :]))


_CLAUSES = ("where", "having", "distinct", "order", "limit", "offset")


def _shorter(query: str) -> Iterator[str]:
    """The query without one of its clauses, joins or columns, and the parts that are queries themselves."""
    tree = sqlglot.parse_one(query, read=RisingWaveQueries)
    for place, node in enumerate(tree.walk()):
        yield from (_without(tree, place, clause, None) for clause in _CLAUSES if node.args.get(clause))
        if isinstance(node, exp.Select):
            yield from (_without(tree, place, "joins", at) for at in range(len(node.args.get("joins") or ())))
            columns = range(len(node.expressions)) if len(node.expressions) > 1 else ()
            yield from (_without(tree, place, "expressions", at) for at in columns)
        if isinstance(node, exp.And | exp.Or):
            yield from (_one_side(tree, place, side) for side in ("this", "expression"))
    for inner in tree.find_all(exp.Query):
        if inner is not tree and isinstance(inner, exp.Select | exp.SetOperation):
            yield inner.sql(dialect="postgres")


def _one_side(tree: exp.Expr, place: int, side: str) -> str:
    copy = tree.copy()
    chosen = list(copy.walk())[place]
    chosen.replace(chosen.args[side].copy())
    return copy.sql(dialect="postgres")


def _without(tree: exp.Expr, place: int, part: str, at: int | None) -> str:
    copy = tree.copy()
    node = list(copy.walk())[place]
    if at is None:
        node.set(part, None)
    else:
        node.set(part, [one for number, one in enumerate(node.args[part]) if number != at])
    return copy.sql(dialect="postgres")


def run(seed: int, count: int, first: int = 0) -> Report:
    """The cases ``first`` to ``count`` of the seed."""
    report = Report()
    with postgres(created(), "a", "k") as oracle:
        for number in range(first, count):
            case = Case.of(random.Random(f"{seed}-{number}"))
            report.asked += 1
            try:
                found = difference(case, oracle.connection)
            except Refused as refused:
                report.refused[str(refused)] += 1
                continue
            if found is not None:
                report.differences.append(smaller(found, oracle.connection))
                print(f"{seed}-{number}: {report.differences[-1]}\n", file=sys.stderr)
    return report


def main(
    count: Annotated[int, typer.Option(help="How many queries.")] = 300,
    seed: Annotated[int | None, typer.Option(help="Of the random numbers; a new one by default.")] = None,
    first: Annotated[int, typer.Option(help="Begin with the case of this number.")] = 0,
) -> None:
    """Random queries as views and at once, beside PostgreSQL; the exit code is 1 if one differs."""
    seed = random.randrange(1 << 31) if seed is None else seed
    print(f"seed {seed}")
    report = run(seed, count, first)
    print(report)
    raise typer.Exit(bool(report.differences))


if __name__ == "__main__":
    typer.run(main)
