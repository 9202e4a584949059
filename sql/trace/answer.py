"""WHY and WHY NOT: the rows of a view that fulfil a condition, and the records behind them; or why there are none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.sql.bind.resolve import resolved_condition
from dovetail.sql.bind.scope import Scope, Visible, place_of
from dovetail.sql.expressions.evaluate import VALUE_FAULTS, mask
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.expressions.predicates import conjuncts
from dovetail.sql.functions.translate import Dialect
from dovetail.sql.plan.nodes import LookupTable, Map, Scan
from dovetail.sql.plan.query_plan import QueryPlan
from dovetail.sql.relations import Stream
from dovetail.sql.trace.demand import Demand, Values, compared
from dovetail.sql.trace.history import NotNarrow
from dovetail.sql.trace.inputs import Batch, Inputs
from dovetail.sql.trace.traced_rows import lineage_of, merged, passing, without_lineage
from dovetail.sql.trace.walk import Walk


@dataclass(frozen=True)
class Traced:
    """``rows`` of the view that fulfil the condition, ``behind`` them LINES; ``lost``, LINES too: the records that are
    about it and behind none; ``notes``: what the answer rests on.
    """

    rows: pa.Table
    behind: pa.Table
    lost: pa.Table
    notes: tuple[str, ...] = ()


def condition_terms(condition: exp.Expr, plan: QueryPlan, dialect: Dialect) -> tuple[Expr, ...]:
    """The conjuncts of a condition over the output columns of a view. Raises SqlError for a value of another type."""
    scope = Scope(tuple(Visible(plan.name, name, name, expr.type) for name, expr in plan.columns), dialect)
    schema = pa.schema([pa.field(name, expr.type) for name, expr in plan.columns])
    trees = [(resolved_condition(term, scope, "WHERE"), place_of(term, "WHERE")) for term in conjuncts(condition)]
    return tuple(_fitting(Expr.over(tree, schema, place).held_as(pa.bool_()), schema, place) for tree, place in trees)


def _fitting(term: Expr, schema: pa.Schema, place: str) -> Expr:
    """``term``, whose constants have the types of what they are compared with, or become such."""
    nothing = pa.table({field.name: pa.nulls(1, field.type) for field in schema})
    try:
        mask(nothing, term.text)
        found = compared(term)
    except VALUE_FAULTS:
        found = term, (None,)
    if found is None or None not in found[1]:
        return term
    types = ", ".join(f"{name} is {schema.field(name).type}" for name in term.columns)
    raise SqlError(
        f"{types}, and is compared with NULL, or with what is no value of its type: no row has it",
        where=place,
        fix=f"give such a value: {', '.join(term.columns)} = ..",
    )


def traced(plan: QueryPlan, terms: Sequence[Expr], inputs: Inputs) -> Traced:
    """``plan``: as far as its rules say which rows meet (``sql.rules.LOGICAL``).

    Raises Unsupported for a plan that is not walked, and for a condition that tells no records of an input.
    """
    expect_traceable(plan, terms, inputs)
    walk = Walk(inputs)
    ledger = walk.ledger
    rows = walk.rows(Map(plan.rows, plan.columns), Demand(tuple(terms)))
    found = passing(rows, terms, ledger, "asked condition")
    behind = merged(lineage_of(found))
    return Traced(without_lineage(found), ledger.lines_of(behind), ledger.lines_of_losses(), tuple(ledger.notes))


_NONE_TELLS = (
    "no column of this view tells: SHOW QUERIES shows the watermark that rows may wait for, and verify recomputes them"
)


def expect_traceable(plan: QueryPlan, terms: Sequence[Expr], inputs: Inputs) -> None:
    """Raises Unsupported where an input would have to be read as a whole, with the columns that can be asked."""
    if _is_traceable(plan, Demand(tuple(terms)), inputs):
        return
    able = [name for name, expr in plan.columns if _is_traceable(plan, _any_value(name, expr.type), inputs)]
    columns = dict.fromkeys(name for term in terms for name in term.columns)
    raise Unsupported(
        f"{', '.join(columns) or 'a condition without columns'} does not tell which records to look at: no column of "
        "every input, and no key by which one input leads to another, is compared with a value",
        where="WHY",
        fix=f"columns that tell: {', '.join(able)}" if able else _NONE_TELLS,
    )


def _is_traceable(plan: QueryPlan, demand: Demand, inputs: Inputs) -> bool:
    """Whether a walk over inputs without records finds its way to each of them."""
    try:
        Walk(NoRecords(inputs)).rows(Map(plan.rows, plan.columns), demand)
    except NotNarrow:
        return False
    return True


def _any_value(name: str, kind: pa.DataType) -> Demand:
    """``name`` compared with a value: which one does not matter."""
    null = exp.cast(exp.Null(), "VARCHAR")
    equality = exp.EQ(this=Expr.column(name, kind).tree.copy(), expression=null)
    return Demand((Expr.condition(equality),))


@dataclass(frozen=True)
class NoRecords:
    """Inputs of the same shape, without records."""

    inputs: Inputs

    def batches(self, scan: Scan) -> Iterator[Batch]:
        return iter(())

    def late(self, scan: Scan) -> pa.Table | None:
        return None

    def relation(self, name: str) -> pa.Table:
        return self.inputs.relation(name)

    def stream(self, name: str) -> Stream:
        return self.inputs.stream(name)

    def looked_up(self, table: LookupTable, by: Sequence[str], keys: Sequence[Values]) -> pa.Table:
        return pa.schema([pa.field(column.name, column.type) for column in table.declared]).empty_table()
