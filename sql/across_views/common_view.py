"""The statement of a view whose rows are those of an operator that several views keep."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from dovetail.changelog.errors import DovetailError, UnknownName
from dovetail.joins.aggregates.aggregation import Aggregation
from dovetail.joins.dataflow.ports import JoinKind
from dovetail.sql.across_views.whole_result import whole_result
from dovetail.sql.expressions import engine
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.plan.nodes import Aggregate, Join, Keyed, Map, MultiwayJoin, Node, Scan
from dovetail.sql.plan.properties import walk
from dovetail.sql.plan.state.common_subplans import Subplan
from dovetail.sql.planner import plan_query
from dovetail.sql.relations import Relations
from dovetail.sql.syntax.dialect import Dovetail
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateView

_SETTINGS = ("", " SETTINGS seek_to = 'earliest'")
_KEEPS_RIGHT = (JoinKind.RIGHT, JoinKind.FULL)
_KEEPS_LEFT = (JoinKind.LEFT, JoinKind.FULL)


@dataclass(frozen=True)
class Reader:
    """A query that has ``subplan`` in it, and reads the columns ``needed`` of that."""

    subplan: Subplan
    needed: tuple[str, ...]


def common_view(node: Subplan, columns: Collection[str], readers: Sequence[Reader], catalog: Relations) -> str:
    """CREATE MATERIALIZED VIEW of the rows of ``node``, with ``columns`` of it; '' where none is found that can be
    planned and of which each of ``readers`` can read what it reads now.
    """
    written = _selected(node, columns)
    if written is None:
        return ""
    name = _free_name(node, catalog)
    texts = (f"CREATE MATERIALIZED VIEW {name} AS {written}{settings}" for settings in _SETTINGS)
    return next((text for text in texts if _serves(text, readers, catalog)), "")


def _serves(text: str, readers: Sequence[Reader], catalog: Relations) -> bool:
    try:
        statement = parse_one(text)
        if not isinstance(statement, CreateView):
            return False
        output = plan_query(statement.name, statement, catalog).output
    except DovetailError:
        return False
    whole = None if output is None else whole_result(output)
    return whole is not None and all(whole.holds(reader.subplan, reader.needed) for reader in readers)


@dataclass(frozen=True)
class _Rows:
    """FROM ``source`` WHERE ``where``; ``columns``: what the columns of a node are in it."""

    source: str
    columns: Mapping[str, Expr]
    where: tuple[Expr, ...] = ()

    def told(self, expr: Expr) -> Expr:
        return expr.substituted(self.columns)


def _selected(node: Subplan, columns: Collection[str]) -> str | None:
    """SELECT of the rows of ``node``; None where its kind has no text here."""
    groups = node if isinstance(node, Aggregate) else None
    rows = _rows(node if groups is None else groups.input)
    if rows is None:
        return None
    values = {name: _text(expr) for name, expr in rows.columns.items()}
    if groups is not None:
        values = {name: values[name] for name in groups.by}
        values |= {one.name: _call(one, rows) for one in groups.aggregations}
        values |= {name: _text(rows.told(call)) for name, call in groups.gathered}
    named = _names([name for name in node.schema.names if name in columns])
    parts = [f"SELECT {', '.join(f'{values[name]} AS {_quoted(shown)}' for name, shown in named.items())}"]
    parts += [f"FROM {rows.source}"]
    parts += [f"WHERE {' AND '.join(_condition(one) for one in rows.where)}"] if rows.where else []
    parts += [f"GROUP BY {', '.join(values[name] for name in groups.by)}"] if groups is not None and groups.by else []
    return " ".join(parts)


def _rows(node: Node) -> _Rows | None:
    if isinstance(node, Scan):
        return _scanned(node)
    if isinstance(node, Keyed):
        return _rows(node.input)
    if isinstance(node, MultiwayJoin):
        return _rows(node.chain)
    if isinstance(node, Join):
        return _joined(node)
    below = _rows(node.input) if isinstance(node, Map) else None
    if not isinstance(node, Map) or below is None:
        return None
    own = () if node.where is None else (below.told(node.where),)
    return _Rows(below.source, {name: below.told(expr) for name, expr in node.columns}, (*below.where, *own))


def _scanned(node: Scan) -> _Rows:
    columns = {
        internal: Expr(
            exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(node.alias, quoted=True)),
            node.schema.field(internal).type,
        )
        for internal, name in node.columns
    }
    source = f"{_quoted(node.stream.name)} AS {_quoted(node.alias)}"
    made = _Rows(source, columns)
    return made if node.where is None else replace(made, where=(made.told(node.where),))


def _joined(node: Join) -> _Rows | None:
    """A condition on a side that is padded would have to stand in a query of its own, as would joins to the right."""
    left, right = _rows(node.left), _rows(node.right)
    if node.kind.asks or left is None or right is None or any(isinstance(one, Join) for one in walk(node.right)):
        return None
    if (left.where and node.kind in _KEEPS_RIGHT) or (right.where and node.kind in _KEEPS_LEFT):
        return None
    both = _Rows(
        f"{left.source} {node.kind.value.upper()} JOIN {right.source}",
        {**left.columns, **right.columns},
        (*left.where, *right.where),
    )
    safe = node.null_safe or (False,) * len(node.keys)
    on = [
        f"{_text(both.columns[one])} {'IS NOT DISTINCT FROM' if same else '='} {_text(both.columns[other])}"
        for (one, other), same in zip(node.keys, safe, strict=True)
    ]
    on += [] if node.residual is None else [_condition(both.told(node.residual))]
    return replace(both, source=f"{both.source} ON {' AND '.join(on)}") if on else None


def _call(one: Aggregation, rows: _Rows) -> str:
    argument = _text(rows.columns[one.argument]) if one.argument else "*"
    return f"{one.fold.value}({'DISTINCT ' if one.distinct else ''}{argument})"


def _condition(expr: Expr) -> str:
    return f"({_text(expr)})" if isinstance(expr.tree, exp.Or) else _text(expr)


def _text(expr: Expr) -> str:
    """As people write it: names in quotes where they need them."""

    def bare(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Identifier) and _is_bare(node.name):
            return exp.to_identifier(node.name, quoted=False)
        return node

    return engine.text(expr.tree.transform(bare))


_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")


@lru_cache(maxsize=1024)
def _is_bare(name: str) -> bool:
    """Whether a name needs no quotes: keywords do."""
    return _PLAIN.fullmatch(name) is not None and Dovetail().tokenize(name)[0].token_type == TokenType.VAR


def _quoted(name: str) -> str:
    return name if _is_bare(name) else '"' + name.replace('"', '""') + '"'


def _names(columns: Sequence[str]) -> dict[str, str]:
    """What the view calls its columns: as the streams do, where no two of them are called so."""
    short = {column: _word(column.rpartition(".")[2]) for column in columns}
    taken = list(short.values())
    return {
        column: name
        if taken.count(name) == 1
        else f"{_word(column)}_{place}"
        if _again(column, columns)
        else _word(column)
        for place, (column, name) in enumerate(short.items())
    }


def _again(column: str, columns: Sequence[str]) -> bool:
    return [_word(one) for one in columns].count(_word(column)) > 1


def _word(text: str) -> str:
    return re.sub(r"\W+", "_", text).strip("_") or "c"


def streams(node: Node) -> list[str]:
    """The streams that ``node`` is made of, as the catalog calls them."""
    return list(dict.fromkeys(one.stream.name for one in walk(node) if isinstance(one, Scan)))


def _free_name(node: Node, catalog: Relations) -> str:
    return next(name for name in _candidates("_".join(map(_word, streams(node)))) if not _taken(name, catalog))


def _candidates(name: str) -> Iterator[str]:
    number = 1
    while True:
        yield name if number == 1 and "_" in name else f"{name}_kept{number if number > 1 else ''}"
        number += 1


def _taken(name: str, catalog: Relations) -> bool:
    try:
        catalog.get(name)
    except UnknownName:
        return False
    return True
