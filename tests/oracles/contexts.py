"""One expression in every place of a query: what the planner makes of it is what its values say, in each of them.

The values are those that the translated expression has, and only of samples whose values are the oracle's. A query
runs as a whole: planned, over a stream whose records are read as JSON, in memory, to the JSON of its output.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from dovetail.changelog.changes import Changes
from dovetail.changelog.encode import encode
from dovetail.changelog.errors import SqlError
from dovetail.joins.state.order import is_ordered
from dovetail.sql.expressions.evaluate import evaluate
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.functions.kept_values import is_interval, kept
from dovetail.sql.functions.typed import Typed
from dovetail.sql.syntax.rules import Rules
from tests.conformance.records import decoded
from tests.oracles.fuzz import Oracle, Sample
from tests.oracles.values import same
from tests.sql.world import World

Answer = Counter[str]
"""How often each row is in the output, as a text that equal rows share."""


@dataclass(frozen=True)
class Source:
    """A relation called ``rows``, of which ``key`` numbers the rows from 0."""

    ddl: str
    rows: pa.Table
    key: str


class Placed(Oracle, Protocol):
    """An oracle whose expressions can stand in queries."""

    def source(self) -> Source: ...

    def column(self, sample: Sample) -> pa.ChunkedArray:
        """Those of ``ours``, as a column holds them."""
        ...


def column_of(typed: Typed, rows: pa.Table, rules: Rules) -> pa.ChunkedArray:
    """The values of an expression over ``rows``, as a column of a query holds them; intervals, which it holds as texts
    that say neither their order nor which are equal, as they are.
    """
    expr = Expr.over((typed if is_interval(typed, rules) else kept(typed, {}, rules)).tree, rows.schema)
    (values,) = evaluate(rows, [expr.text])
    return values.cast(expr.type, safe=False)


@dataclass(frozen=True)
class Context:
    """``query`` has the places {e} (the expression) and {key}. ``expected``: its rows, from the keys and the values."""

    name: str
    query: str
    expected: Callable[[Sequence[int], pa.Array], pa.Table]
    fits: Callable[[pa.DataType], bool] = lambda kind: True


def _selected(keys: Sequence[int], values: pa.Array) -> pa.Table:
    return pa.table({"k": pa.array(keys, pa.int32()), "x": values})


def _known(keys: Sequence[int], values: pa.Array) -> pa.Table:
    return pa.table({"k": pa.array(keys, pa.int32())}).filter(values.is_valid())


def _holding(keys: Sequence[int], values: pa.Array) -> pa.Table:
    return pa.table({"k": pa.array(keys, pa.int32())}).filter(pc.fill_null(values, False))


def _group_of(values: pa.Array) -> list[int]:
    """The number of its group, of each value: the first row that has an equal one."""
    texts = [_shown(row["x"]) for row, _ in records(pa.table({"x": values}))]
    return [texts.index(one) for one in texts]


def _grouped(keys: Sequence[int], values: pa.Array) -> pa.Table:
    groups = Counter(_group_of(values))
    first = sorted(groups)
    count = pa.array([groups[one] for one in first], pa.int64())
    return pa.table({"x": values.take(pa.array(first)), "n": count})


def _joined(keys: Sequence[int], values: pa.Array) -> pa.Table:
    group, valid = _group_of(values), values.is_valid().to_pylist()
    pairs = [
        (one, other)
        for place, one in enumerate(keys)
        for beside, other in enumerate(keys)
        if valid[place] and group[place] == group[beside]
    ]
    return pa.table({"k": [one for one, _ in pairs], "other": [other for _, other in pairs]})


def _greatest(keys: Sequence[int], values: pa.Array) -> pa.Table:
    """Of the three groups of keys the number of values and the greatest."""
    rows = []
    for rest in range(3):
        own = values.filter(pa.array([key % 3 == rest for key in keys]))
        known = own.drop_null()
        order = pc.sort_indices(known)
        rows.append((rest, len(known), known.take(order[-1:]) if len(known) else pa.nulls(1, values.type)))
    return pa.table(
        {
            "g": [rest for rest, _, _ in rows],
            "n": [count for _, count, _ in rows],
            "x": pa.concat_arrays([greatest for _, _, greatest in rows]),
        }
    )


def _known_groups(keys: Sequence[int], values: pa.Array) -> pa.Table:
    found = _greatest(keys, values)
    return found.filter(pc.greater(found.column("n"), 0)).select(["g"])


_GROUPS = "FROM {rows} GROUP BY {key} % 3"
CONTEXTS = tuple(
    Context(f"{name} {place}".strip(), query.replace("{rows}", rows), expected, fits)
    for place, rows in (("", "rows"), ("over table(rows)", "table(rows)"))
    for name, query, expected, fits in (
        ("SELECT", "SELECT {key} AS k, {e} AS x FROM {rows}", _selected, lambda kind: True),
        ("WHERE", "SELECT {key} AS k FROM {rows} WHERE ({e}) IS NOT NULL", _known, lambda kind: True),
        ("condition", "SELECT {key} AS k FROM {rows} WHERE {e}", _holding, pa.types.is_boolean),
        ("GROUP BY", "SELECT {e} AS x, count(*) AS n FROM {rows} GROUP BY ({e})", _grouped, lambda kind: True),
        ("aggregate", f"SELECT {{key}} % 3 AS g, count({{e}}) AS n, max({{e}}) AS x {_GROUPS}", _greatest, is_ordered),
        ("HAVING", f"SELECT {{key}} % 3 AS g {_GROUPS} HAVING max({{e}}) IS NOT NULL", _known_groups, is_ordered),
        (
            "JOIN",
            "SELECT {key} AS k, other FROM {rows} JOIN (SELECT {key} AS other, {e} AS m_ FROM {rows}) AS b ON {e} = m_",
            _joined,
            lambda kind: True,
        ),
    )
)


@dataclass
class Placement:
    """What a run showed: how many queries were compared, and of those that differ or are refused the text."""

    compared: int = 0
    refused: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.compared} queries compared, {len(self.refused)} refused, {len(self.differences)} differ"


def placed(oracle: Placed, seed: int, count: int) -> Placement:
    """Random expressions on which the oracle agrees, each in one context, in turn."""
    outcome, source = Placement(), oracle.source()
    # A topic has no NaN and no infinity: rows of these stay out.
    finite = pa.array([_is_finite(row) for row in source.rows.to_pylist()])
    source = replace(source, rows=source.rows.filter(finite))
    samples = _agreed(oracle, random.Random(seed))
    for number, sample in enumerate(islice(samples, count)):
        values = oracle.column(sample).combine_chunks().filter(finite)
        turned = CONTEXTS[number % len(CONTEXTS) :] + CONTEXTS
        joins = _joins(sample.text, source.rows.column_names)
        context = next(one for one in turned if one.fits(values.type) and (joins or "JOIN" not in one.query))
        _compare(outcome, source, context, sample, values)
    return outcome


def _joins(text: str, columns: Sequence[str]) -> bool:
    """Whether it is a key: it reads a column, and has no date_diff(), which within ON counts the other way round."""
    names = re.findall(r"\w+", re.sub(r"'[^']*'", "", text))
    return not {"date_diff"} & {*names} and bool({*columns} & {*names})


def _is_finite(row: Mapping[str, object]) -> bool:
    return all(math.isfinite(value) for value in row.values() if isinstance(value, float))


def _agreed(oracle: Placed, rng: random.Random) -> Iterator[Sample]:
    """Those whose values are the oracle's and have a form in JSON."""
    for sample in oracle.expressions(rng):
        theirs = oracle.theirs(sample)
        if theirs is None or not _has_json(oracle.column(sample).type):
            continue
        if all(same(one, other) for one, other in zip(oracle.ours(sample), theirs, strict=True)):
            yield sample


def _has_json(kind: pa.DataType) -> bool:
    return not (pa.types.is_interval(kind) or pa.types.is_null(kind))


def _compare(outcome: Placement, source: Source, context: Context, sample: Sample, values: pa.Array) -> None:
    query = context.query.replace("{e}", sample.text).replace("{key}", source.key)
    keys = source.rows.column(source.key).to_pylist()
    try:
        found = _answer(_run(source, query))
    except SqlError as fault:
        outcome.refused.append(f"{context.name}: {query}\n    {fault.what}")
        return
    outcome.compared += 1
    wanted = _answer(records(context.expected(keys, values)))
    if found != wanted:
        missing, extra = sorted((wanted - found).elements()), sorted((found - wanted).elements())
        outcome.differences.append(f"{context.name}: {query}\n    missing {missing}\n    too many {extra}")


def _run(source: Source, query: str) -> list[tuple[Mapping[str, object], int]]:
    world = World.of(source.ddl)
    with closing(world.engine):
        bounded = "table(rows)" in query
        if not bounded:
            world.start(query)
        world.insert("rows", *(dict(row) for row, _ in records(source.rows)))
        if bounded:
            world.start(query)
        return [(change.row, change.delta) for change in world.engine.drain()]


def answers(source: Source, relation: str, expressions: Sequence[str]) -> list[object]:
    """The one row of ``SELECT expressions FROM relation``."""
    listed = ", ".join(f"{one} AS c{place}" for place, one in enumerate(expressions))
    row = [row for row, delta in _run(source, f"SELECT {listed} FROM {relation}") if delta > 0][-1]
    return list(row.values())


def records(rows: pa.Table) -> list[tuple[Mapping[str, object], int]]:
    """The rows as the JSON of a topic says them."""
    encoded = encode(Changes.of(rows).table, tuple(rows.column_names), (), updating=False)
    return [decoded(value) for value in encoded.values if value is not None]


def _answer(rows: Sequence[tuple[Mapping[str, object], int]]) -> Answer:
    answer: Answer = Counter()
    for row, delta in rows:
        answer[_shown(list(row.values()))] += delta
    return Counter({row: count for row, count in answer.items() if count})


def _shown(value: object) -> str:
    return json.dumps(_without_signs(value), sort_keys=True, default=str)


def _without_signs(value: object) -> object:
    """-0.0 is 0.0."""
    if isinstance(value, list):
        return [_without_signs(one) for one in value]
    return 0.0 if isinstance(value, float) and value == 0 else value
