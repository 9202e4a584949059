"""ARRAY JOIN and UNNEST in FROM: their arrays, and the names of their elements.

FROM s ARRAY JOIN tags                                  ``tags`` is an element from here on
FROM s LEFT ARRAY JOIN a AS x, array_map(y -> y, b) AS z    ``a`` stays the array; ``*`` has no x and no z
FROM t CROSS JOIN UNNEST(t.tags) AS u(tag)              ``tag`` is a column of a table ``u``; ``*`` has it
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.changelog.wording import type_words
from dovetail.joins.dataflow.ports import Pad
from dovetail.sql.bind.from_clause.from_item import FromItem
from dovetail.sql.bind.resolve import Expressions
from dovetail.sql.bind.scope import Scope, Visible, place_of
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.functions.aggregate_calls import aggregates_in
from dovetail.sql.functions.typed import filled
from dovetail.sql.plan.nodes import ArrayJoin, Static
from dovetail.sql.syntax.dialect import ARRAY
from dovetail.sql.syntax.set_functions import GIVES_ARRAYS
from dovetail.sql.syntax.unnest_joins import REFUSED, TABLE, UNNAMED

CLAUSE = "ARRAY JOIN"
UNNEST = "UNNEST"
PREFIX = "array"
"""What the internal names of elements begin with."""


@dataclass(frozen=True)
class JoinedArray:
    """``expression`` of a ``clause``, ARRAY JOIN or UNNEST.

    replaces  the column in whose place its elements stand, without an alias
    table     the alias of UNNEST, whose column they are; '' of ARRAY JOIN
    """

    expression: exp.Expr
    name: str
    place: str
    replaces: Visible | None = None
    table: str = ""

    @property
    def clause(self) -> str:
        return UNNEST if self.table else CLAUSE

    def _no_array(self, kind: pa.DataType) -> SqlError:
        if self.table:
            what, fix = self.expression.sql(dialect="postgres"), "UNNEST(string_to_array(text, ',')) AS u(part)"
            fix = f"name a column of an array type, or compute one: {fix}"
        else:
            what, fix = self.name, "name a column of type array(..), or compute one: split_by_char(',', text) AS part"
        return SqlError(f'{self.clause} takes arrays, and "{what}" is {type_words(kind)}', where=self.place, fix=fix)

    def element(self, prefix: str, kind: pa.DataType) -> Visible:
        """The column of the elements, of which ``kind`` is the type of the array. Raises SqlError if it is none."""
        if not pa.types.is_list(kind):
            raise self._no_array(kind)
        internal = f"{prefix}.{self.name}"
        if self.table:
            shown = self.table != UNNAMED
            return Visible(self.table, self.name, internal, kind.value_type, starred=shown, bare=shown)
        if self.replaces is None:
            return Visible("", self.name, internal, kind.value_type, starred=False)
        return replace(self.replaces, internal=internal, type=kind.value_type)


def flattened(array: JoinedArray, tree: exp.Expr, kind: pa.DataType) -> tuple[exp.Expr, pa.DataType]:
    """An array in the engine's SQL, with its type. UNNEST gives the elements of the innermost ones, a
    function of several rows its own.
    """
    if array.expression.meta.get(GIVES_ARRAYS):
        return tree, kind
    while array.table and pa.types.is_list(kind) and pa.types.is_list(kind.value_type):
        tree, kind = filled("flatten({0})", [tree]), kind.value_type
    return tree, kind


def is_array_join(join: exp.Join) -> bool:
    return bool(join.kind == ARRAY)


def clause_of(join: exp.Join) -> str:
    return UNNEST if join.meta.get(TABLE) else CLAUSE


def spelled(join: exp.Join) -> str:
    """How such a join is written, for a fix."""
    return "CROSS JOIN UNNEST" if join.meta.get(TABLE) else CLAUSE


def padding(join: exp.Join) -> Pad:
    """What the elements are of a row that has none, on the left: NULL for UNNEST, their defaults for ARRAY JOIN."""
    return Pad.NULL if join.meta.get(TABLE) else Pad.DEFAULT


def joined_arrays(join: exp.Join, scope: Scope) -> list[JoinedArray]:
    """The arrays of ``join`` over what stands before it."""
    written = (join.this, *join.expressions)
    table, refused = join.meta.get(TABLE, ""), join.meta.get(REFUSED)
    if refused:
        raise Unsupported(refused[0], where=place_of(join.this, UNNEST), fix=refused[1])
    if table == UNNAMED:
        _refuse_groups(join)
    found = [_element(one, table) for one in written] if table else [_array(one, scope) for one in written]
    names = [array.name.casefold() for array in found]
    for array, name in zip(found, names, strict=True):
        if names.count(name) > 1:
            raise SqlError(
                f'"{array.name}" stands twice in {array.clause}', where=array.place, fix="give each its own alias"
            )
    if table:
        scope.refuse_aliases_of(Scope((Visible(table, "", "", pa.null()),)), place_of(join.this, UNNEST))
    return found


def _refuse_groups(join: exp.Join) -> None:
    """Groups are of the rows before their items are unnested; here the items are unnested first."""
    select = join.parent
    if isinstance(select, exp.Select) and any(next(aggregates_in(item), None) for item in select.expressions):
        raise Unsupported(
            "unnest() beside an aggregate is not supported",
            where=place_of(join.this, "SELECT"),
            fix="unnest in FROM, and group the elements: FROM t CROSS JOIN UNNEST(t.tags) AS u(tag) GROUP BY u.tag",
        )


def _element(written: exp.Expr, table: str) -> JoinedArray:
    return JoinedArray(written.unalias(), written.alias, place_of(written, UNNEST), table=table)


def _array(written: exp.Expr, scope: Scope) -> JoinedArray:
    expression, place = written.unalias(), place_of(written, CLAUSE)
    column = scope.find(expression, CLAUSE) if isinstance(expression, exp.Column) else None
    if column is not None and written.alias in ("", column.name):
        return JoinedArray(expression, column.name, place, column)
    if not written.alias:
        raise SqlError(
            f"the elements of {expression.sql(dialect='clickhouse')} have no name",
            where=place,
            fix=f"{CLAUSE} .. AS x",
        )
    taken = next((one for one in scope.columns if one.name == written.alias and not one.table), None)
    if taken is not None:
        raise SqlError(f'there is a column "{written.alias}" already', where=place, fix="choose another alias")
    return JoinedArray(expression, written.alias, place)


def with_elements(scope: Scope, arrays: Sequence[JoinedArray], elements: Sequence[Visible]) -> Scope:
    """``scope`` with the elements: in the place of their array, or behind, before any column of their name."""
    replaced = {
        array.replaces.internal: element for array, element in zip(arrays, elements, strict=True) if array.replaces
    }
    added = tuple(element for array, element in zip(arrays, elements, strict=True) if not array.replaces)
    names = {element.name.casefold() for element in added if not element.table}
    kept = (replaced.get(column.internal, column) for column in scope.columns)
    hidden = (replace(column, bare=column.bare and column.name.casefold() not in names) for column in kept)
    return replace(scope, columns=(*hidden, *added))


def array_joined(join: exp.Join, from_item: FromItem, prefix: str, expressions: Expressions) -> FromItem:
    """``from_item``, which stands before ``join``, with the elements of its arrays."""
    scope, schema = from_item.scope, from_item.node.schema
    if isinstance(from_item.node, Static):
        raise Unsupported(
            f"table(x) stands before {clause_of(join)}, and a stream is joined after it",
            where=place_of(join.this, clause_of(join)),
            fix=f"write the stream first: FROM stream JOIN (SELECT .. FROM table(x) {spelled(join)} ..) AS a ON ..",
        )
    found = joined_arrays(join, scope)
    known = scope.seen_with(schema)
    exprs = [Expr.over(expressions.value(one.expression, scope, one.clause), known, one.place) for one in found]
    arrays = [Expr(*flattened(one, expr.tree, expr.type)) for one, expr in zip(found, exprs, strict=True)]
    elements = [one.element(prefix, array.type) for one, array in zip(found, arrays, strict=True)]
    columns = tuple((element.internal, array) for element, array in zip(elements, arrays, strict=True))
    node = ArrayJoin(from_item.node, columns, left=join.side == "LEFT", pad=padding(join))
    return replace(from_item, node=node, scope=with_elements(scope, found, elements))
