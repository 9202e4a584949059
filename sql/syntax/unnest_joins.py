"""UNNEST, as RisingWave and PostgreSQL have it: an ARRAY JOIN whose elements are columns of a table.

FROM t, UNNEST(t.tags) AS u(tag)                    t ARRAY JOIN t.tags AS tag, called u.tag too
FROM t LEFT JOIN UNNEST(t.a, t.b) AS u(x, y) ON true
SELECT id, unnest(tags) FROM t                      the same, of a table that has no name
FROM UNNEST(ARRAY[1, 2]) AS u(x)                    the same, beside one row
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from dovetail.sql.syntax.dialect import ARRAY
from dovetail.sql.syntax.set_functions import arrays_of, as_unnest, set_function

TABLE = "unnest_alias"
"""In ``meta`` of such a join: the alias of the table that its elements are columns of."""
REFUSED = "unnest_refused"
"""In ``meta``: why it is none that can be made, and what to write instead."""

UNNAMED = "#unnest"
"""The alias of the elements that items of a select list unnest."""

_COMMA = "unnest_comma"
"""In ``meta``: whether it is joined by a comma, which binds looser than JOIN."""
_KINDS = ("", "CROSS", "INNER", "OUTER")
_APART = (
    "LEFT JOIN (SELECT t.id, u.x FROM t CROSS JOIN UNNEST(t.a) AS u(x) WHERE ..) AS e ON e.id = t.id, by a key of t"
)

_COLUMN = "unnest"
"""What PostgreSQL calls the elements without an alias."""


def unnest_of(join: exp.Join) -> exp.Unnest | None:
    """The UNNEST that is joined, LATERAL or not, or a function of several rows; None if something else is."""
    join.set("this", as_unnest(join.this))
    item = join.this.this if isinstance(join.this, exp.Lateral) else join.this
    return item if isinstance(item, exp.Unnest) else None


def unnested_head(select: exp.Select) -> exp.Select:
    """``select`` with a function of several rows that FROM begins with in a subquery."""
    head = select.args.get("from_")
    item = None if head is None else as_unnest(head.this)
    if isinstance(head, exp.From) and isinstance(item, exp.Unnest):
        head.set("this", _alone(item))
    return select


def stands_alone(join: exp.Join, unnest: exp.Unnest) -> bool:
    """Whether the elements are those of no row before it, and met by a condition."""
    met = join.side or join.method or join.args.get("on") or join.args.get("using")
    return bool(met) and next(unnest.find_all(exp.Column), None) is None


def joined_alone(join: exp.Join, unnest: exp.Unnest) -> exp.Join:
    join.set("this", _alone(unnest))
    return join


def _alone(unnest: exp.Unnest) -> exp.Subquery:
    """The elements as a subquery, beside one row."""
    join = array_join(exp.Join(this=unnest, kind="CROSS"), unnest)
    table = exp.to_identifier(join.meta[TABLE])
    names = [one.args["alias"].copy() for one in (join.this, *join.expressions)]
    columns: list[exp.Expr] = [exp.Column(this=name, table=table.copy()) for name in names]
    query = exp.Select(expressions=columns, from_=_one_row(), joins=[join])
    return exp.Subquery(this=query, alias=exp.TableAlias(this=table))


def _one_row() -> exp.From:
    alias = exp.TableAlias(this=exp.to_identifier(UNNAMED, quoted=True), columns=[exp.to_identifier("of", quoted=True)])
    return exp.From(this=exp.Values(expressions=[exp.Tuple(expressions=[exp.true()])], alias=alias))


def array_join(join: exp.Join, unnest: exp.Unnest) -> exp.Join:
    """The join as an ARRAY JOIN; one that cannot be made says why in ``meta``, for who binds it."""
    names, refused = _names(join), _why_refused(join, unnest)
    if len(names) != len(unnest.expressions):
        refused = refused or ("UNNEST names the elements of all its arrays, or of none", "UNNEST(t.a, t.b) AS u(x, y)")
    named = [exp.alias_(array, name, copy=False) for array, name in zip(unnest.expressions, names, strict=False)]
    made = exp.Join(this=named[0], expressions=named[1:], kind=ARRAY, side=join.side or None)
    made.meta.update({TABLE: join.this.alias or _COLUMN, REFUSED: refused, _COMMA: _is_comma(join)})
    return made


def _is_comma(join: exp.Join) -> bool:
    return not (join.kind or join.side or join.method or join.args.get("on") or join.args.get("using"))


def _why_refused(join: exp.Join, unnest: exp.Unnest) -> tuple[str, str] | None:
    """What is not supported, and what is; None where the join can be made."""
    alias, condition = join.this.args.get("alias"), join.args.get("on")
    if alias is not None and any(isinstance(name, exp.ColumnDef) for name in alias.args.get("columns") or ()):
        return "UNNEST names its elements, which have the type of their array", "UNNEST(t.a) AS u(x)"
    if join.kind not in _KINDS or join.method or join.args.get("using") or join.side not in ("", "LEFT"):
        return "UNNEST is of each row before it, so it has none alone", "CROSS JOIN, or LEFT JOIN .. ON true"
    if condition is None or _is_true(condition):
        return None
    if join.side:
        return "LEFT JOIN UNNEST with a condition is not supported", _APART
    return "UNNEST with a condition is not supported", "ON true, and the condition in WHERE"


def _is_true(condition: exp.Expr) -> bool:
    value = condition.unnest()
    return isinstance(value, exp.Boolean) and bool(value.this)


def _names(join: exp.Join) -> list[exp.Identifier]:
    """``AS u(x)`` names the column x, ``AS u`` names it u as well."""
    alias = join.this.args.get("alias")
    if alias is None:
        return [exp.to_identifier(_COLUMN)]
    columns = alias.args.get("columns") or [alias.this.copy()]
    return [name.this if isinstance(name, exp.ColumnDef) else name for name in columns]


def refuse_sides(select: exp.Select) -> None:
    """Behind a comma RIGHT and FULL JOIN are of the UNNEST alone, which has no rows alone: ``meta`` says so."""
    comma: exp.Join | None = None
    for join in select.args.get("joins") or ():
        if _COMMA in join.meta or _is_comma(join):
            comma = join if join.meta.get(_COMMA) else None
        elif comma is not None and join.side in ("RIGHT", "FULL"):
            reason = f"{join.side} JOIN behind a comma is a join with the elements of UNNEST alone"
            comma.meta[REFUSED] = (
                reason,
                "CROSS JOIN UNNEST(..): then all before it is the left side",
            )


def unnested_items(select: exp.Select) -> exp.Select:
    """``select`` with the arrays that its items unnest as joins; as it is where rows are grouped, or numbered: of these
    it would be others.
    """
    parts = [part for item in select.expressions for part in _own_parts(item)]
    calls = [part for part in parts if _is_call(part)]
    others = any(isinstance(part, exp.AggFunc | exp.Window) for part in parts)
    if not calls or others or select.args.get("group"):
        return select
    if not select.args.get("from_"):
        select.set("from_", _one_row())
    names = [f"{_COLUMN}{number}" for number in range(len(calls))]
    called = [_COLUMN if set_function(call) is None else str(call.this).lower() for call in calls]
    arrays = [exp.alias_(_array(call), name) for call, name in zip(calls, names, strict=True)]
    made = exp.Join(this=arrays[0], expressions=arrays[1:], kind=ARRAY)
    made.meta[TABLE] = UNNAMED
    select.append("joins", made)
    for call, name, shown in zip(calls, names, called, strict=True):
        element: exp.Expr = exp.column(name, table=UNNAMED, quoted=True)
        element = exp.alias_(element, shown) if call.parent is select else element
        element.meta.update(call.meta)
        call.replace(element)
    return select


def _own_parts(item: exp.Expr) -> Iterator[exp.Expr]:
    """The parts of an item outside of subqueries, and outside of what it unnests."""
    return item.walk(prune=lambda part: isinstance(part, exp.Query) or _is_call(part))


def _is_call(part: exp.Expr) -> bool:
    function = set_function(part)
    if function is not None:
        return len(function.arrays) == 1 or str(part.this).lower() in _MEMBERS
    named = isinstance(part, exp.Anonymous) and str(part.this).lower() == _COLUMN
    return named and len(part.expressions) == 1


def _array(call: exp.Expr) -> exp.Expr:
    function = set_function(call)
    if function is None:
        array: exp.Expr = call.expressions[0].copy()
        several = set_function(array)
        if several is None or len(several.arrays) > 1:
            return array
        # Of rows that are arrays: the elements of all of them.
        assert isinstance(array, exp.Anonymous)
        return arrays_of(array, several._replace(gives_arrays=False))[0]
    assert isinstance(call, exp.Anonymous)
    item = _MEMBERS.get(str(call.this).lower())
    return arrays_of(call, function)[0] if item is None else _members(call, item)


_MEMBERS = {"jsonb_each": exp.DType.JSONB, "jsonb_each_text": exp.DType.VARCHAR}
"""What gives rows of a key and a value where it is called in SELECT, with the type of the value."""


def _members(call: exp.Anonymous, item: exp.DType) -> exp.Expr:
    """``map_entries(jsonb_populate_map(NULL::map(varchar, jsonb), object))``"""
    parts = [exp.DataType(this=kind) for kind in (exp.DType.VARCHAR, item)]
    none = exp.Cast(this=exp.Null(), to=exp.DataType(this=exp.DType.MAP, expressions=parts, nested=True))
    members = exp.Anonymous(this="jsonb_populate_map", expressions=[none, *(one.copy() for one in call.expressions)])
    return exp.Anonymous(this="map_entries", expressions=[members])
