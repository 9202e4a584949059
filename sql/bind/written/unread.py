"""What the parser understands of a query and the binder reads: for each form its parts. Any other form, and any other
part of these, is refused, so that no word of a query is taken and ignored.

The parser knows far more than both dialects have: SAMPLE, PIVOT, INTO, FOR UPDATE.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import ErrorLevel, exp

from dovetail.changelog.errors import Unsupported
from dovetail.sql.bind.scope import place_of

_PAIR = "this expression"
READ: Mapping[type[exp.Expr], str] = {
    # Queries and their clauses
    exp.Select: "with_ expressions distinct from_ joins prewhere where distribute group having qualify windows order "
    "limit offset laterals",
    **dict.fromkeys(
        (exp.Union, exp.Intersect, exp.Except), "with_ this expression distinct order limit offset by_name kind on"
    ),
    exp.Subquery: "this alias with_ joins order limit offset",
    exp.With: "expressions",
    exp.CTE: "this alias",
    exp.From: "this",
    exp.Join: "this on side kind using method expressions match_condition",
    exp.Lateral: "this alias",
    exp.Table: "this alias db catalog joins version",
    exp.TableAlias: "this columns",
    exp.Version: "this kind expression",
    exp.Values: "expressions alias",
    exp.Final: "this",
    exp.Where: "this",
    exp.PreWhere: "this",
    exp.Having: "this",
    exp.Qualify: "this",
    exp.Distribute: "expressions",
    exp.Group: "expressions grouping_sets cube rollup totals all",
    exp.GroupingSets: "expressions",
    exp.Cube: "expressions",
    exp.Rollup: "expressions",
    exp.Order: "this expressions",
    exp.Ordered: "this desc nulls_first",
    exp.Limit: "expression expressions limit_options",
    exp.Offset: "expression expressions",
    exp.Fetch: "direction count limit_options",
    exp.LimitOptions: "rows with_ties",
    exp.Distinct: "expressions on",
    exp.Star: "except_ replace",
    exp.Alias: "this alias",
    exp.Window: "this partition_by order spec alias over",
    exp.WindowSpec: "kind start start_side end end_side exclude",
    # Names and values
    exp.Column: "this table db",
    exp.Identifier: "this quoted",
    exp.Literal: "this is_string",
    exp.Boolean: "this",
    exp.Null: "",
    exp.Var: "this",
    exp.HexString: "this is_integer",
    exp.BitString: "this",
    exp.Placeholder: "this",
    exp.Interval: "this unit fraction_in_string",
    exp.DataType: "this expressions nested values kind nullable",
    exp.DataTypeParam: "this expression",
    exp.ColumnDef: "this kind",
    # Forms of expressions
    exp.Anonymous: "this expressions",
    exp.AnonymousAggFunc: "this expressions",
    exp.CombinedAggFunc: "this expressions",
    exp.ParameterizedAgg: "this expressions params",
    exp.CombinedParameterizedAgg: "this expressions params",
    exp.Lambda: "this expressions",
    exp.Paren: "this",
    exp.Not: "this",
    exp.Neg: "this",
    exp.BitwiseNot: "this",
    exp.Any: "this",
    exp.All: "this",
    exp.Exists: "this",
    exp.Is: "this expression negate",
    exp.JSON: "this",
    exp.In: "this expressions query unnest field is_global",
    exp.Between: "this low high symmetric",
    exp.Case: "this ifs default",
    exp.If: "this true false",
    exp.Cast: "this to",
    exp.TryCast: "this to safe",
    exp.CastToStrType: "this to",
    exp.Array: "expressions bracket_notation",
    exp.Tuple: "expressions",
    exp.Struct: "expressions",
    exp.PropertyEQ: "this expression",
    exp.VarMap: "keys values",
    exp.Bracket: "this expressions",
    exp.Slice: "this expression",
    exp.Dot: "this expression",
    exp.Extract: "this expression",
    exp.Substring: "this start length",
    exp.StrPosition: "this substr position",
    exp.Trim: "this expression position",
    exp.Overlay: "this expression from_ for_",
    exp.Floor: "this decimals",
    exp.Ceil: "this decimals",
    exp.Sqrt: "this",
    exp.Cbrt: "this",
    exp.Initcap: "this",
    exp.AtTimeZone: "this zone",
    exp.Filter: "this expression",
    exp.WithinGroup: "this expression",
    exp.IgnoreNulls: "this",
    exp.RespectNulls: "this",
    exp.Like: "this expression negate",
    exp.ILike: "this expression negate",
    exp.Div: "this expression typed safe",
    exp.DPipe: "this expression safe",
    exp.CurrentDate: "",
    exp.CurrentTime: "",
    exp.CurrentTimestamp: "",
    exp.Localtime: "",
    exp.Localtimestamp: "",
    **dict.fromkeys(
        (
            *(exp.And, exp.Or, exp.Xor, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ),
            *(exp.NullSafeNEQ, exp.Add, exp.Sub, exp.Mul, exp.IntDiv, exp.Mod, exp.Pow, exp.Escape),
            *(exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseLeftShift, exp.BitwiseRightShift),
            *(exp.SimilarTo, exp.RegexpLike, exp.RegexpILike, exp.Collate, exp.StartsWith, exp.ArrayContainsAll),
            *(exp.ArrayContainedBy, exp.ArrayOverlaps, exp.JSONExtract, exp.JSONExtractScalar, exp.JSONBExtract),
            *(exp.JSONBExtractScalar, exp.JSONBContains),
        ),
        _PAIR,
    ),
    # Aggregates and functions of windows
    **dict.fromkeys(
        (
            *(exp.Sum, exp.Avg, exp.Min, exp.Max, exp.AnyValue, exp.LogicalAnd, exp.LogicalOr, exp.CountIf),
            *(exp.ApproxDistinct, exp.Median, exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop),
            *(exp.ArrayAgg, exp.First, exp.Last, exp.Mode, exp.FirstValue, exp.LastValue, exp.Ntile),
            *(exp.BitwiseAndAgg, exp.BitwiseOrAgg, exp.BitwiseXorAgg),
        ),
        "this",
    ),
    **dict.fromkeys((exp.Corr, exp.CovarPop, exp.CovarSamp, exp.ArgMax, exp.ArgMin), _PAIR),
    exp.Count: "this expressions big_int",
    exp.GroupConcat: "this separator",
    exp.Quantile: "this quantile",
    exp.ApproxQuantile: "this quantile",
    exp.PercentileCont: _PAIR,
    exp.PercentileDisc: _PAIR,
    exp.Lag: "this offset default",
    exp.Lead: "this offset default",
    exp.NthValue: "this offset",
    **dict.fromkeys((exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist), ""),
}
_SET_ASIDE = "leave it out; docs/statements.md and docs/functions.md list what is read"
_OF_A_SERVER = "write the value itself, or ? and give the value beside the statement: docs/python.md, docs/serve.md"
_UNNESTED = "SELECT k, x FROM s ARRAY JOIN a AS x, of a stream; FROM t CROSS JOIN UNNEST(a) AS u(x), of a table"
_OF_OTHERS: Mapping[tuple[type[exp.Expr], str], tuple[str, str]] = {
    **dict.fromkeys(
        ((exp.CurrentUser, ""), (exp.SessionUser, ""), (exp.CurrentRole, ""), (exp.CurrentCatalog, "")),
        ("the user of a session", "leave it out: a query has the same rows for all who ask"),
    ),
    **dict.fromkeys(((exp.Parameter, ""), (exp.SessionParameter, "")), ("a variable", _OF_A_SERVER)),
    (exp.MatchAgainst, ""): ("@@", _OF_A_SERVER),
    (exp.Placeholder, "kind"): ("a parameter {name:type}", ":name, with the value beside the statement"),
    (exp.Min, "expressions"): ("min of several values", "least(a, b), the least of each row"),
    (exp.Max, "expressions"): ("max of several values", "greatest(a, b), the greatest of each row"),
    (exp.Lateral, "view"): ("LATERAL VIEW", _UNNESTED),
    (exp.Select, "into"): ("SELECT .. INTO", "CREATE TABLE t AS SELECT .., or CREATE MATERIALIZED VIEW v AS SELECT .."),
    (exp.Table, "pivots"): ("PIVOT", "SELECT sum(CASE WHEN kind = 'a' THEN n END) AS a, .. FROM s"),
}
"""Forms, and parts of forms, that others have: what they are called, and what serves in their place."""
_WORDS = {
    "distribute": "PARTITION BY",
    "sample": "SAMPLE",
    "pivots": "PIVOT",
    "locks": "FOR UPDATE",
    "hint": "a hint",
    "hints": "a hint",
    "with_fill": "WITH FILL",
    "recursive": "WITH RECURSIVE",
    "materialized": "MATERIALIZED",
    "ordinality": "WITH ORDINALITY",
    "format": "FORMAT",
}
"""What the user has written, for the parts that have another name."""


def refuse_unread(query: exp.Query) -> None:
    """Raises Unsupported for what stands in the query and is not read."""
    for node in query.walk():
        part = unread_in(node)
        if part is not None:
            raise _unread(node, part)


def unread_in(node: exp.Expr) -> str | None:
    """The part of a form, its own parts apart, that is not read: '' is the form itself, None that all of it is read."""
    read = READ.get(type(node))
    if read is None:
        return ""
    known = read.split()
    return next(
        (name for name, part in node.args.items() if part and name in node.arg_types and name not in known), None
    )


def _unread(node: exp.Expr, part: str) -> Unsupported:
    if isinstance(node, exp.JSONPath):
        return Unsupported(
            "-> and ->> take members of the jsonb of tables",
            where=place_of(node.parent or node, "the query"),
            fix="of a tuple address.city; of JSON in a text raw:address.city",
        )
    named, fix = _OF_OTHERS.get((type(node), part), (_named(part), _SET_ASIDE))
    what = f"{named} is not supported: {_shown(node)}" if named else f"{_shown(node)} is not supported"
    return Unsupported(what, where=place_of(node, "the query"), fix=fix)


def _named(part: str) -> str:
    return _WORDS.get(part, part.strip("_").replace("_", " ").upper())


def _shown(node: exp.Expr) -> str:
    text = " ".join(node.sql(dialect="clickhouse", unsupported_level=ErrorLevel.IGNORE).split())
    return text if len(text) <= 80 else f"{text[:80]} .."
