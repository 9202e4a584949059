"""What a JOIN says beside its condition: which of the right rows it takes, and whether it waits for them.

l ASOF JOIN r ON l.k = r.k AND l.t >= r.t                the nearest
l LATEST JOIN r ON l.k = r.k                             the last inserted
l JOIN r FOR SYSTEM_TIME AS OF l.t ON l.k = r.k          the version valid at l.t
.. AND lag_behind(20ms, l.t, r.t)                        answered when the right side has passed l.t by 20 ms
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.joins.dataflow.ports import JoinKind
from dovetail.sql.bind.clauses import event_time
from dovetail.sql.bind.resolve import resolved
from dovetail.sql.bind.scope import Scope, place_of
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.expressions.predicates import conjuncts
from dovetail.sql.plan.conditions.lag import LAG_FORM
from dovetail.sql.plan.joins.unresolved_join import LAG_BEHIND, JoinSyntax, Lag, UnresolvedJoin
from dovetail.sql.query_settings import QuerySettings
from dovetail.sql.syntax.calls import function_name
from dovetail.sql.syntax.intervals import milliseconds

_AS_OF = "FOR SYSTEM_TIME AS OF"


def unresolved_join(join: exp.Join, modifiers: Sequence[exp.Expr], left: Scope, both: Scope) -> UnresolvedJoin:
    """``modifiers``: those of ON, as ``terms_of`` finds them."""
    lag = _lag(modifiers, both, place_of(join, "JOIN .. ON"))
    time = event_time(join.this)
    if time is not None:
        tree = resolved(time, left, _AS_OF)
        as_of = Expr.over(tree, pa.schema(list(left.types.items())), place_of(time, _AS_OF))
        return UnresolvedJoin(JoinSyntax.TEMPORAL, as_of, lag)
    method = join.method.upper()
    return UnresolvedJoin(
        JoinSyntax(method) if method in (JoinSyntax.ASOF, JoinSyntax.LATEST) else JoinSyntax.ALL, lag=lag
    )


def kind_of(join: exp.Join) -> JoinKind:
    if join.kind.upper() in ("SEMI", "ANTI"):
        return JoinKind(join.kind.lower())
    return JoinKind(join.side.lower()) if join.side else JoinKind.INNER


def direct_joins(settings: QuerySettings) -> str:
    """Whether joins are lookups where they can be: 'yes', 'only' where nothing else will do, or ''."""
    words = [word.strip() for word in settings.text("join_algorithm").split(",")]
    return "" if "direct" not in words else "only" if set(words) == {"direct"} else "yes"


def using_names(join: exp.Join, left: Scope, right: Scope) -> list[str]:
    """The columns that USING equates, or NATURAL."""
    if join.method.upper() == "NATURAL":
        return left.common(right)
    return [identifier.name for identifier in join.args.get("using") or ()]


def terms_of(on: exp.Expr) -> tuple[list[exp.Expr], list[exp.Expr]]:
    """The conditions of ON, and the modifiers among them. Raises SqlError for a modifier within a condition."""
    terms = conjuncts(on)
    modifiers = [term for term in terms if function_name(term) == LAG_BEHIND]
    conditions = [term for term in terms if function_name(term) != LAG_BEHIND]
    for condition in conditions:
        if any(function_name(node) == LAG_BEHIND for node in condition.walk()):
            raise SqlError(
                f"{LAG_BEHIND} is no condition: it says when a left row is answered",
                where=place_of(condition, "JOIN .. ON"),
                fix=f"AND {LAG_FORM}, by itself",
            )
    return conditions, modifiers


def _lag(modifiers: Sequence[exp.Expr], scope: Scope, place: str) -> Lag | None:
    if not modifiers:
        return None
    if len(modifiers) > 1:
        raise SqlError(f"{LAG_BEHIND} stands once in ON", where=place, fix="leave the second one out")
    arguments = list(modifiers[0].expressions)
    lengths = [milliseconds(argument) for argument in arguments]
    if len(arguments) == 1 and lengths[0] is not None:
        raise Unsupported(
            f"{LAG_BEHIND} with a length alone would wait by the clock, and a replay would give other rows",
            where=place,
            fix=f"align by event time: {LAG_FORM}",
        )
    columns = [argument for argument in arguments if isinstance(argument, exp.Column)]
    given = [length for length in lengths if length is not None]
    if len(arguments) != 3 or len(columns) != 2 or len(given) != 1:
        raise SqlError(f"{LAG_BEHIND} takes a length of time and a column of each side", where=place, fix=LAG_FORM)
    first, second = (scope.find(column, "JOIN .. ON").internal for column in columns)
    return Lag((first, second), _whole_ms(given[0], place), place)


def _whole_ms(length: Decimal, place: str) -> int:
    if length <= 0 or length % 1:
        raise SqlError(f"{LAG_BEHIND} takes a positive length, in whole milliseconds", where=place, fix=LAG_FORM)
    return int(length)


def refuse_method(method: UnresolvedJoin, kind: JoinKind, place: str) -> None:
    """What is said of a join with ``table(x)`` or with what is looked up, neither of which has an order in time."""
    if method.syntax != JoinSyntax.ALL:
        written = f"{method.syntax} JOIN" if method.syntax != JoinSyntax.TEMPORAL else f"JOIN .. {method.syntax}"
        shown = written if kind == JoinKind.INNER else f"{kind.upper()} {written}"
        raise Unsupported(
            f"{shown} needs a stream on both sides: table(x) is read once, and what is looked up has no order",
            where=place,
            fix=f"{written} with the stream itself, or JOIN table(x) by equalities",
        )
    if method.lag is not None:
        raise Unsupported(
            f"{LAG_BEHIND} waits for a stream on the right: table(x), and what is looked up, is there",
            where=method.lag.place,
            fix=f"leave {LAG_BEHIND} out",
        )
