"""GROUP BY: a SELECT over groups as an Aggregate, with a Map below it that computes its keys and arguments.

SELECT upper(c) AS u, sum(a + b) / count() AS mean .. GROUP BY u HAVING count() > 1

Map         __g0 = upper(c), __a0 = a + b
Aggregate   by __g0: sum(a + b), count(*)
Map         where count(*) > 1
the select list over its columns
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import count

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.changelog.formats.text_forms import INTERVAL
from dovetail.joins.aggregates.aggregation import Aggregation
from dovetail.sql.bind.clock_conditions import of_groups
from dovetail.sql.bind.groups.grouping_sets import GroupingSets
from dovetail.sql.bind.recomputed_calls import with_columns
from dovetail.sql.bind.scope import Scope, place_of
from dovetail.sql.expressions.aggregate_functions import Call, call_of, call_types, is_call, is_folded, refuse_nested
from dovetail.sql.expressions.dict_functions import dict_calls, dict_function
from dovetail.sql.expressions.expression import Expr, Structure, as_formed, column_named, structure
from dovetail.sql.expressions.partitions.window_calls import over_others
from dovetail.sql.expressions.predicates import conjuncts
from dovetail.sql.functions.aggregate_calls import aggregates_in
from dovetail.sql.functions.forms import is_grouping
from dovetail.sql.functions.growth import MOST_ALIASES, outgrown
from dovetail.sql.functions.kept_values import interval_length
from dovetail.sql.functions.typed import bracketed
from dovetail.sql.plan.column_names import unused
from dovetail.sql.plan.nodes import Aggregate, ArrayJoin, Map, Node
from dovetail.sql.syntax.rules import Rules

KEY, ARGUMENT = "__g", "__a"
"""What the names of computed keys and arguments begin with."""
ONE = Expr(exp.Literal.number(1), pa.int32())
"""What a row has that has no column."""
SET = "__set"
"""The number of the grouping set that a row is for."""
_BITS = 63
"""How many keys grouping() can tell apart in 64 bits with a sign."""


def is_grouped(select: exp.Query) -> bool:
    """Whether the rows of a SELECT are groups."""
    if select.args.get("group") or select.args.get("having"):
        return True
    return any(
        next(aggregates_in(projection), None) is not None or any(map(is_grouping, projection.walk()))
        for projection in select.expressions
    )


def grouping_sets(select: exp.Select, scope: Scope) -> GroupingSets:
    """The keys of GROUP BY and their sets: a position or an alias stands for the item of the select list."""
    group = select.args.get("group")
    if group is None:
        return GroupingSets((), ((),))
    listed = list(group.expressions)
    if group.args.get("all"):
        listed = [
            *(item.unalias() for item in select.expressions if next(aggregates_in(item), None) is None),
            *listed,
        ]
    found = GroupingSets.of(group, listed)
    return replace(found, keys=tuple(selected_item(key, select, scope, "GROUP BY") for key in found.keys))


def selected_item(key: exp.Expr, select: exp.Select, scope: Scope, clause: str) -> exp.Expr:
    """A key of GROUP BY or ORDER BY with the item of the select list that it calls by its position or alias."""
    if isinstance(key, exp.Literal) and not key.is_string:
        position = int(key.this) if str(key.this).isdecimal() else 0
        if not 1 <= position <= len(select.expressions):
            raise SqlError(
                f"{clause} {key.this} is no position in the select list",
                where=place_of(key, clause),
                fix=f"a position from 1 to {len(select.expressions)}, or the name of a column",
            )
        item: exp.Expr = select.expressions[position - 1].unalias()
        return item
    return without_aliases(key, select, scope)


def having_terms(select: exp.Select, scope: Scope, *, clock: bool) -> list[exp.Expr]:
    """``clock``: whether the time in them is that of the clock, as it goes on."""
    having = select.args.get("having")
    if having is None:
        return []
    condition = of_groups(having.this) if clock else having.this
    return [without_aliases(term, select, scope) for term in conjuncts(condition)]


def without_aliases(expression: exp.Expr, select: exp.Select, scope: Scope) -> exp.Expr:
    """The expression with what it calls by an alias of the select list in place; a column goes before an alias."""
    named = count()

    @cache
    def items() -> dict[str, exp.Expr]:
        return {item.alias.casefold(): item.unalias() for item in select.expressions if item.alias}

    def spelled_out(part: exp.Expr, within: frozenset[str]) -> exp.Expr:
        def replaced(node: exp.Expr) -> exp.Expr:
            if (
                not isinstance(node, exp.Column)
                or isinstance(node.this, exp.Star)
                or node.table
                or scope.has(node.name)
            ):
                return node
            if node.find_ancestor(exp.Query) is not None:
                return node
            name = node.name.casefold()
            if name in within or name not in items():
                return node
            if next(named) > MOST_ALIASES:
                raise outgrown(place_of(node, "SELECT"))
            return bracketed(spelled_out(items()[name], within | {name}))

        return part.copy().transform(replaced)

    return spelled_out(expression, frozenset())


def refuse_lookups_of_aggregates(select: exp.Select) -> None:
    """dict_get is asked for each row below the groups."""
    having = select.args.get("having")
    for expression in (*select.expressions, *([having] if having is not None else [])):
        for call in dict_calls(expression):
            if next(aggregates_in(call), None) is not None:
                raise Unsupported(
                    f"{dict_function(call)} of an aggregate is not supported",
                    where=place_of(call, "SELECT"),
                    fix="aggregate in a subquery, and look up above it: SELECT dict_get('d', 'x', m) FROM (SELECT "
                    "max(k) AS m FROM t GROUP BY ..)",
                )


@dataclass
class Groups:
    """The groups of the rows of ``input``; aggregations are added as expressions over the groups ask for them."""

    input: Node
    rules: Rules
    around: Sequence[pa.Field] = ()
    """Of a subquery: the columns of the queries around it."""
    bounded: bool = False
    """The rows are all there: each call is computed by the engine."""
    columns: dict[str, Expr] = field(default_factory=dict)
    keys: dict[Structure, str] = field(default_factory=dict)
    """Each key -> the column that holds it."""
    shown: dict[Structure, str] = field(default_factory=dict)
    """Of keys of which equal ones may look different: the column that holds what the group shows."""
    aggregations: dict[str, Aggregation] = field(default_factory=dict)
    called: dict[Structure, str] = field(default_factory=dict)
    """Each call -> the column that holds its value. The name is for people, and not what the call is known by."""
    recomputed: dict[str, Expr] = field(default_factory=dict)
    """The calls that are computed from all rows of a group, over ``columns``."""
    sets: tuple[frozenset[Structure], ...] = ()
    """The keys of each of several grouping sets."""

    @property
    def known(self) -> pa.Schema:
        """The columns that keys and arguments may read."""
        return pa.schema([*self.input.schema, *self.around])

    def refuse_ungrouped(self, names: Iterable[str], place: str) -> None:
        """Raises SqlError if one of ``names`` is a column of the rows, and no key."""
        ungrouped = [name for name in names if name in self.input.schema.names and name not in self.keys.values()]
        if ungrouped:
            raise _ungrouped(min(ungrouped), place)

    def add_key(self, key: Expr) -> None:
        if key.structure in self.keys:
            return
        if key.form == INTERVAL:
            # Equal intervals can be two texts: the group has the least of its own.
            self.keys[key.structure] = self._column(interval_length(key), KEY)
            self.shown[key.structure] = self._called(exp.Min(this=key.tree.copy()), "GROUP BY")
        else:
            self.keys[key.structure] = self._column(key, KEY)

    def add_sets(self, keys: Sequence[Expr], sets: Sequence[Sequence[int]]) -> None:
        """Group by each of ``sets`` of ``keys``: every row once for each, without the keys that the set lacks."""
        if len(sets) == 1:
            for position in sets[0]:
                self.add_key(keys[position])
            return
        self.sets = tuple(frozenset(keys[position].structure for position in one) for one in sets)
        numbers = exp.Array(expressions=[exp.Literal.number(number) for number in range(len(sets))])
        self.input = ArrayJoin(self.input, ((SET, Expr(numbers, pa.list_(pa.int64()))),))
        self.add_key(self.input.column(SET))
        for key in keys:
            if key.structure not in self.keys:
                self.keys[key.structure] = self._column(self._within_its_sets(key), KEY)

    def _within_its_sets(self, key: Expr) -> Expr:
        """NULL in the rows of sets without it. A key of all sets is as it is, so groups can close by it."""
        number = column_named(SET)
        within = [exp.Literal.number(at) for at, one in enumerate(self.sets) if key.structure in one]
        if len(within) == len(self.sets):
            return key
        return Expr(exp.Case().when(exp.In(this=number, expressions=within), key.tree.copy()), key.type)

    def _grouping(self, call: exp.Expr, place: str) -> exp.Expr:
        """``grouping(a, b)``: a bit for each key, the last one's the lowest; 1 where the set lacks it."""
        arguments = [structure(argument) for argument in call.expressions]
        known = frozenset().union(*self.sets)
        if not self.sets or not arguments or len(arguments) > _BITS or not known.issuperset(arguments):
            raise SqlError(
                f"grouping() takes one to {_BITS} keys of ROLLUP, CUBE or GROUPING SETS",
                where=place,
                fix="SELECT a, grouping(a), count() .. GROUP BY ROLLUP (a)",
            )
        case = exp.Case()
        for number, keys in enumerate(self.sets):
            lacking = int("".join("0" if key in keys else "1" for key in arguments), 2)
            at = exp.EQ(this=column_named(SET), expression=exp.Literal.number(number))
            case = case.when(at, exp.Literal.number(lacking))
        return exp.Cast(this=case, to=exp.DataType.build("bigint"))

    def _column(self, expr: Expr, prefix: str) -> str:
        """The column of the Map that holds ``expr``: under its own name, if it is a plain one."""
        for name, known in self.columns.items():
            if known == expr:
                return name
        name = expr.plain or ""
        outside = self.bounded and name not in self.input.schema.names
        if not name or outside or self.known.field(name).type != expr.type:
            name = f"{prefix}{sum(known.startswith(prefix) for known in self.columns)}"
        self.columns[name] = expr
        return name

    def over(self, tree: exp.Expr, place: str) -> exp.Expr:
        """An expression over the rows, as one over the groups. Raises SqlError for a column that is no key."""

        def replaced(node: exp.Expr) -> exp.Expr:
            known = structure(node)
            if (key := self.shown.get(known, self.keys.get(known))) is not None:
                return column_named(key)
            if node.find_ancestor(exp.Query) is not None and not isinstance(node, exp.Column):
                # The calls of a subquery are its own; what it reads of the rows around is of the groups.
                return node
            if is_grouping(node):
                return self._grouping(node, place)
            if isinstance(node, exp.Window):
                return over_others(node, replaced)
            if is_call(node):
                return column_named(self._called(node, place))
            if isinstance(node, exp.Column) and node.name in self.input.schema.names:
                raise _ungrouped(node.name, place)
            return node

        return as_formed(tree.transform(replaced), tree)

    def _called(self, node: exp.Expr, place: str) -> str:
        """The column that holds the value of a call."""
        if is_folded(node) and not self.bounded:
            return self._aggregated(call_of(node, place), place)
        return self._recomputed(node, place)

    def _aggregated(self, call: Call, place: str) -> str:
        name = self.called.get(call.structure)
        if name is None:
            name = self._name(call.shown)
            self.called[call.structure] = name
            self.aggregations[name] = self._aggregation(name, call, place)
        return name

    def _name(self, shown: str) -> str:
        return unused(shown, {*self.aggregations, *self.recomputed}, mark=" #")

    def _recomputed(self, call: exp.Expr, place: str) -> str:
        known = structure(call)
        name = self.called.get(known)
        if name is None:
            for part in (call.this if isinstance(call, exp.Filter) else call).iter_expressions():
                refuse_nested(part, place)
            made = Expr.over(call, self.known, place)
            name = self._name(made.readable.lower())
            self.called[known] = name
            self.recomputed[name] = Expr(with_columns(call, lambda part: self._argument(part, place)), made.type)
        return name

    def _argument(self, part: exp.Expr, place: str) -> str:
        return self._column(Expr.over(part, self.known, place), ARGUMENT)

    def _aggregation(self, name: str, call: Call, place: str) -> Aggregation:
        argument = call.filtered
        if argument is None:
            return Aggregation(name, call.fold, "", pa.int64())
        handed, result = call_types(call, self.known, place, self.rules)
        column = self._column(Expr(argument, handed), ARGUMENT)
        return Aggregation(name, call.fold, column, result, call.distinct)

    def node(self, place: str) -> Aggregate:
        by = tuple(dict.fromkeys(self.keys.values()))
        columns = self.columns
        if not columns:
            # A row has at least one column, so that it can be told from others.
            first = next(iter(self.input.schema.names), "")
            columns = {first: self.input.column(first)} if first else {ARGUMENT: ONE}
        return Aggregate(
            Map(self.input, tuple(columns.items())),
            by,
            tuple(self.aggregations.values()),
            recomputed=tuple(self.recomputed.items()),
            place=place,
        )


def distinct(
    node: Node, columns: Sequence[tuple[str, Expr]], place: str, rules: Rules, bounded: bool = False
) -> tuple[Node, tuple[tuple[str, Expr], ...]]:
    """SELECT DISTINCT: the groups of all columns."""
    groups = Groups(node, rules, bounded=bounded)
    for _, expr in columns:
        groups.add_key(expr)
    over = tuple((name, Expr(groups.over(expr.tree, place), expr.type)) for name, expr in columns)
    return groups.node(place), over


def _ungrouped(internal: str, place: str) -> SqlError:
    name = internal.rpartition(".")[2]
    return SqlError(
        f'"{name}" is neither in GROUP BY nor in an aggregate, so it has no one value in a group',
        where=place,
        fix=f"GROUP BY {name}, or an aggregate of it: max({name})",
    )
