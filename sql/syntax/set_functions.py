"""Functions that give several rows, as RisingWave and PostgreSQL have them: each is an UNNEST of arrays.

FROM generate_series(1, 3) AS g(i)                  FROM UNNEST(series_to_array(1, 3)) AS g(i)
FROM t, jsonb_each(t.document) AS m                 FROM t, UNNEST(jsonb_keys(..), jsonb_values(..)) AS m(key, value)
FROM abs(-1) AS a(x)                                FROM UNNEST(ARRAY[abs(-1)]) AS a(x)
SELECT regexp_split_to_table(words, ' ') FROM t     SELECT unnest(regexp_split_to_array(words, ' ')) FROM t
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlglot import exp

from dovetail.sql.syntax.calls import CONTENTS, WINDOWS


class SetFunction(NamedTuple):
    """arrays   the functions that give the columns of its rows as arrays
    columns  what they are called; none: the one column is called as the function is, or as its alias
    gives_arrays  its values are arrays, where UNNEST of arrays within arrays would give the elements of these
    """

    arrays: Sequence[str]
    columns: Sequence[str] = ()
    gives_arrays: bool = False


SET_FUNCTIONS: Mapping[str, SetFunction] = {
    "generate_series": SetFunction(["series_to_array"]),
    "range": SetFunction(["range_to_array"]),
    "generate_subscripts": SetFunction(["subscripts_to_array"]),
    "regexp_matches": SetFunction(["regexp_matches_to_array"], gives_arrays=True),
    "regexp_split_to_table": SetFunction(["regexp_split_to_array"]),
    "string_to_table": SetFunction(["string_to_array"]),
    "jsonb_populate_recordset": SetFunction(["jsonb_records_to_array"]),
    "jsonb_array_elements": SetFunction(["jsonb_to_array"], ["value"]),
    "jsonb_array_elements_text": SetFunction(["jsonb_to_text_array"], ["value"]),
    "jsonb_object_keys": SetFunction(["jsonb_keys"]),
    "jsonb_each": SetFunction(["jsonb_keys", "jsonb_values"], ["key", "value"]),
    "jsonb_each_text": SetFunction(["jsonb_keys", "jsonb_text_values"], ["key", "value"]),
}
GIVES_ARRAYS = "gives_arrays"
_PLACES = "ordinals_to_array"
_ORDINALITY = "ordinality"


def set_function(call: exp.Expr | None) -> SetFunction | None:
    """What the call is, by its name; None for any other expression."""
    return SET_FUNCTIONS.get(str(call.this).lower()) if isinstance(call, exp.Anonymous) else None


def _of_columns(item: exp.Expr) -> list[exp.Expr] | None:
    """The array of each column of ``jsonb_to_record(document) AS r(a int, b varchar)``; None for any other item."""
    call = item.this
    name = str(call.this).lower() if isinstance(call, exp.Anonymous) and len(call.expressions) == 1 else ""
    alias = item.args.get("alias")
    columns = alias.args.get("columns") or [] if alias is not None else []
    if name not in _TO_ROWS or not columns or not all(isinstance(one, exp.ColumnDef) for one in columns):
        return None
    return [_TO_ROWS[name](column, call.expressions[0]) for column in columns]


def _to_record(column: exp.ColumnDef, document: exp.Expr) -> exp.Expr:
    row = exp.Anonymous(this="jsonb_populate_record", expressions=[_no_row(column), document.copy()])
    array = exp.Array(expressions=[exp.Dot(this=exp.Paren(this=row), expression=column.this.copy())])
    array.meta[GIVES_ARRAYS] = True
    return array


def _to_recordset(column: exp.ColumnDef, documents: exp.Expr) -> exp.Expr:
    rows = exp.Anonymous(this="jsonb_records_to_array", expressions=[_no_row(column), documents.copy()])
    row = exp.to_identifier("r_")
    field = exp.Lambda(this=exp.Dot(this=row.copy(), expression=column.this.copy()), expressions=[row])
    array = exp.Anonymous(this="array_transform", expressions=[rows, field])
    array.meta[GIVES_ARRAYS] = True
    return array


def _no_row(column: exp.ColumnDef) -> exp.Expr:
    """``NULL::struct<a int>``"""
    return exp.Cast(this=exp.Null(), to=exp.DataType(this=exp.DType.STRUCT, expressions=[column.copy()], nested=True))


_TO_ROWS = {"jsonb_to_record": _to_record, "jsonb_to_recordset": _to_recordset}


def _is_of_values(call: exp.Anonymous) -> bool:
    """Whether a call in FROM reads no relation: its one row is its value."""
    part: exp.Expr = call
    while isinstance(part, exp.Anonymous) and part.expressions:
        part = part.expressions[0]
    named = isinstance(part, exp.Column | exp.Anonymous | exp.Identifier | exp.Table)
    return not named and str(call.this).lower() not in _OF_RELATIONS


_OF_RELATIONS = frozenset({*CONTENTS, *WINDOWS, "changelog", "cumulate"})


def arrays_of(call: exp.Anonymous, function: SetFunction) -> list[exp.Expr]:
    """Calls of the functions that give its columns; ``meta`` says of one whether its elements are arrays."""
    made: list[exp.Expr] = [
        exp.Anonymous(this=name, expressions=[one.copy() for one in call.expressions]) for name in function.arrays
    ]
    for one in made:
        one.meta[GIVES_ARRAYS] = function.gives_arrays
    return made


def as_unnest(item: exp.Expr) -> exp.Expr:
    """An item of FROM with its function as an UNNEST, and WITH ORDINALITY as one array more; any other as it is.

    Each column has a name afterwards: that of its alias, or the one it has without.
    """
    call = item.this if isinstance(item, exp.Table | exp.Lateral) else None
    unnest = call if isinstance(call, exp.Unnest) else item if isinstance(item, exp.Unnest) else None
    written, counted = _column_names(item), bool(item.args.get("ordinality"))
    if isinstance(call, exp.Anonymous):
        table = item.alias or str(call.this).lower()
        rows = _rows_of(item, call, table)
        if rows is None:
            return item
        arrays, own = rows
    elif unnest is not None and unnest.args.get("offset"):
        arrays, table = list(unnest.expressions), item.alias or "unnest"
        own = [table] * len(arrays)
        counted, offset = True, unnest.args["offset"]
        written += [offset] if isinstance(offset, exp.Identifier) else []
    else:
        return item
    if counted:
        arrays, own = (
            [*arrays, exp.Anonymous(this=_PLACES, expressions=[one.copy() for one in arrays])],
            [*own, _ORDINALITY],
        )
    names = [*written, *(exp.to_identifier(name) for name in own[len(written) :])]
    alias = exp.TableAlias(this=_table_name(item, table), columns=names)
    return exp.Unnest(expressions=arrays, alias=alias)


def _rows_of(item: exp.Expr, call: exp.Anonymous, table: str) -> tuple[list[exp.Expr], list[str]] | None:
    """The arrays that are the columns of a call in FROM, and what those are called that have no name of the alias; None
    for a call over a relation.
    """
    if (function := set_function(call)) is not None:
        return arrays_of(call, function), list(function.columns) or [table]
    if (typed := _of_columns(item)) is not None:
        return typed, []
    if not _is_of_values(call):
        return None
    array = exp.Array(expressions=[call.copy()])
    array.meta[GIVES_ARRAYS] = True
    return [array], [table]


def _table_name(item: exp.Expr, name: str) -> exp.Identifier:
    alias = item.args.get("alias")
    return alias.this.copy() if alias is not None and alias.this is not None else exp.to_identifier(name)


def _column_names(item: exp.Expr) -> list[exp.Identifier]:
    alias = item.args.get("alias")
    columns = alias.args.get("columns") or [] if alias is not None else []
    return [one.this if isinstance(one, exp.ColumnDef) else one for one in columns]
