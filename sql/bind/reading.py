"""The dialect of a query: that of the relations it reads, as their DDL decides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

from sqlglot import exp

from dovetail.changelog.errors import SqlError, SyntaxFault, UnknownName
from dovetail.sql.bind.named_columns import with_names
from dovetail.sql.bind.written.deduplicated import deduplicated
from dovetail.sql.bind.written.qualifiers import is_cte, is_own
from dovetail.sql.bind.written.rows_before import over_rows_before
from dovetail.sql.bind.written.substreams import in_substreams
from dovetail.sql.bind.written.untranslated import as_written
from dovetail.sql.bind.written.window_forms import refuse_window_forms
from dovetail.sql.functions.dialects import DIALECTS
from dovetail.sql.functions.own_functions import WithFunctions
from dovetail.sql.functions.translate import Dialect
from dovetail.sql.relations import Relations, TrackedCatalog
from dovetail.sql.syntax.calls import CONTENTS, dotted_name, function_name
from dovetail.sql.syntax.parse import mended
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.set_functions import set_function
from dovetail.sql.syntax.statements import CreateIndex, CreateStream, CreateView, Select

Asked = TypeVar("Asked", bound=Select | CreateView)


def reading(statement: Select | CreateView, catalog: Relations) -> tuple[exp.Query, Dialect]:
    """The query of a statement as its dialect reads it. Raises SqlError where that dialect cannot."""
    rules = expression_rules(statement, catalog)
    try:
        query = statement.query if statement.readings is None else statement.readings.of(rules)
    except SyntaxFault as slip:
        raise mended(slip, rules) from None
    if rules is Rules.TIMEPLUS:
        query = in_substreams(over_rows_before(as_written(deduplicated(query.copy()))))
    else:
        query = as_written(query)
    refuse_window_forms(query)
    return with_names(query, statement.columns if isinstance(statement, CreateView) else ()), dialect_of(rules, catalog)


def inlined_reading(view: CreateView, catalog: Relations) -> tuple[exp.Query, Dialect]:
    """As ``reading``, of a view whose query stands in the place of its name."""
    if isinstance(catalog, TrackedCatalog):
        catalog.inlined_views.add(view.name)
    return reading(view, catalog)


def inlined_index(index: CreateIndex, catalog: Relations) -> exp.Query:
    """What an index holds: the rows of its stream, its own columns first."""
    if isinstance(catalog, TrackedCatalog):
        catalog.inlined_views.add(index.name)
    own = [exp.to_identifier(name, quoted=True) for name in index.index.columns]
    rest = exp.Star(except_=[name.copy() for name in own])
    return exp.select(*(exp.column(name) for name in own), rest).from_(
        exp.Table(this=exp.to_identifier(index.stream, quoted=True))
    )


def _of_none(statement: Select | CreateView, rules: Rules) -> Rules:
    """Of a query without relations, and with words that one dialect has alone (``FROM unnest(..)``)."""
    read = {} if statement.readings is None else statement.readings.by_rules
    return Rules.RISINGWAVE if read and isinstance(read[Rules.TIMEPLUS], SqlError) else rules


def dialect_of(rules: Rules, catalog: Relations) -> Dialect:
    return WithFunctions(DIALECTS[rules], catalog)


def with_dialect(statement: Asked, catalog: Relations, without_relations: Rules) -> Asked:
    """The statement with its dialect among its settings, as ``expression_rules`` finds it."""
    rules = expression_rules(statement, catalog, without_relations)
    return replace(statement, settings={"dialect": rules.value, **statement.settings})


def expression_rules(
    statement: Select | CreateView, catalog: Relations, without_relations: Rules = Rules.TIMEPLUS
) -> Rules:
    """Tables and sources have RisingWave's expressions; with a stream or a dictionary among them, Timeplus'.
    ``without_relations``: what a query has that reads none.
    """
    said = statement.settings.get("dialect")
    if said is not None:
        return Rules(str(said).lower())
    found = set(_rules_read(statement.query, catalog)) or {_of_none(statement, without_relations)}
    return Rules.RISINGWAVE if found == {Rules.RISINGWAVE} else Rules.TIMEPLUS


def _of_view(view: CreateView, catalog: Relations) -> Rules:
    known = catalog.known.rules if isinstance(catalog, TrackedCatalog) else {}
    if view.name not in known:
        known[view.name] = expression_rules(view, catalog)
    return known[view.name]


def _rules_read(query: exp.Query, catalog: Relations) -> Iterator[Rules]:
    ctes = {cte.alias for cte in query.find_all(exp.CTE)}
    for table in query.find_all(exp.Table):
        if set_function(table.this) is not None:
            yield Rules.RISINGWAVE
        named = _relation(table)
        if named is None or (is_cte(named, ctes) and not _reads_relation(table.this)):
            continue
        try:
            definition = catalog.get(named.name if is_own(named) else dotted_name(named)).definition
        except UnknownName:
            continue
        if isinstance(definition, CreateIndex):
            definition = catalog.get(definition.stream).definition
        match definition:
            case CreateStream():
                yield definition.rules
            case CreateView():
                yield _of_view(definition, catalog)
            case _:
                yield Rules.TIMEPLUS


def _reads_relation(call: exp.Expr) -> bool:
    """Whether a name in it is of a relation whatever the CTEs are called: in ``table(x)``, also within windows, and
    ``changes(x, ..)``.
    """
    while isinstance(call, exp.Anonymous) and call.expressions:
        if function_name(call) in CONTENTS:
            return True
        call = call.expressions[0]
    return False


def _relation(table: exp.Table) -> exp.Expr | None:
    """The name of the relation that a FROM item reads, also within ``table(x)``, ``changelog(x, k)`` and windows."""
    call = table.this
    while isinstance(call, exp.Anonymous):
        if not call.expressions:
            return None
        call = call.expressions[0]
    return call if isinstance(call, exp.Column) else table
