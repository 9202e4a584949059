"""ARRAY JOIN over the content of tables, as DuckDB takes it: what stands before it becomes a subquery that unnests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from sqlglot import exp

from dovetail.joins.dataflow.ports import Pad
from dovetail.sql.bind.scope import Scope
from dovetail.sql.expressions.engine import type_name
from dovetail.sql.functions.timeplus.arrays import default_of
from dovetail.sql.functions.typed import filled

Array = tuple[exp.Expr, pa.DataType]
"""An array in the engine's SQL, and its type."""


def column_names(scope: Scope) -> Mapping[str, str]:
    """Internal name -> the name in the subquery, of every column that can be read: its own, as far as this is one of a
    kind (USING goes by it).
    """
    read = [column for column in scope.columns if not column.spent]
    bare = [column.name.casefold() for column in read if column.bare]
    return {
        column.internal: column.name if column.bare and bare.count(column.name.casefold()) == 1 else column.internal
        for column in read
    }


def unnested(arrays: Sequence[Array], *, left: bool, pad: Pad) -> list[exp.Expr]:
    """What gives the elements of ``arrays`` side by side: DuckDB pads the shorter ones with NULL.

    ``left``: where none has an element, one row with the default of each type, or NULL, as ``pad`` says.
    """
    if not left:
        return [filled("unnest({0})", [tree]) for tree, _ in arrays]
    empty = exp.and_(*(exp.Paren(this=filled("coalesce(len({0}), 0) = 0", [tree])) for tree, _ in arrays))
    return [
        filled(
            "unnest(CASE WHEN {0} THEN {1} ELSE {2} END)",
            [empty, filled("[NULL]", []) if pad is Pad.NULL else _one_default(kind), tree],
        )
        for tree, kind in arrays
    ]


def _one_default(kind: pa.DataType) -> exp.Expr:
    default = "''" if pa.types.is_binary(kind.value_type) else default_of(kind.value_type)
    return filled("[NULL]" if default is None else f"CAST([{default}] AS {type_name(kind)})", [])


def rows_of(select: exp.Select, join: exp.Join, columns: Sequence[exp.Expr], alias: str) -> None:
    """Puts, in place, a subquery of ``columns`` over all that stands before ``join`` where that stands."""
    joins: list[exp.Join] = select.args["joins"]
    place = next(index for index, one in enumerate(joins) if one is join)
    rows = exp.Select(expressions=list(columns))
    rows.set("from_", select.args["from_"])
    rows.set("joins", joins[:place])
    as_alias = exp.TableAlias(this=exp.to_identifier(alias, quoted=True))
    select.set("from_", exp.From(this=exp.Subquery(this=rows, alias=as_alias)))
    select.set("joins", joins[place + 1 :])
