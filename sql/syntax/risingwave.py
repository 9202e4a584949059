"""The dialect of RisingWave: PostgreSQL's expressions, every call and position kept as it is written.

sqlglot's own reader maps calls onto standard functions, formats onto those of C and paths onto JSONPath, and loses
what its trees have no place for (``INTERVAL '1 day 02:30:00'``). Here a call stays a name and its arguments; aggregates
and calls with words between their arguments have trees. Joins and durations are those of ``sql.syntax.dialect``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.risingwave import RisingWave
from sqlglot.parsers.risingwave import RisingWaveParser
from sqlglot.tokenizer_core import Token, TokenType

from dovetail.sql.syntax.dialect import PARAMETERS, QueryParser, without_distribution
from dovetail.sql.syntax.unnest_joins import (
    array_join,
    joined_alone,
    refuse_sides,
    stands_alone,
    unnest_of,
    unnested_head,
    unnested_items,
)

_AGGREGATES = (
    "COUNT", "SUM", "AVG", "MIN", "MAX", "BOOL_AND", "BOOL_OR", "EVERY", "BIT_AND", "BIT_OR", "BIT_XOR", "ANY_VALUE",
    "STDDEV", "STDDEV_POP", "STDDEV_SAMP", "VARIANCE", "VAR_POP", "VAR_SAMP", "CORR", "COVAR_POP", "COVAR_SAMP",
    "ARRAY_AGG", "APPROX_COUNT_DISTINCT", "FIRST_VALUE", "LAST_VALUE", "MODE", "PERCENTILE_CONT", "PERCENTILE_DISC",
    "ROW_NUMBER", "RANK", "DENSE_RANK", "LAG", "LEAD", "ARG_MAX", "ARG_MIN", "MAX_BY", "MIN_BY",
)  # fmt: skip
_WITH_WORDS = ("CAST", "EXTRACT", "OVERLAY", "POSITION", "STRING_AGG", "SUBSTRING", "TRIM")
"""Calls with words between their arguments: ``EXTRACT(hour FROM t)``."""
INTERVAL_UNITS = frozenset(
    {"NANOSECOND", "MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR"}
)


class RisingWaveTokenizer(RisingWave.Tokenizer):
    """PostgreSQL's tokens; no statement is swallowed whole, and PRIMARY KEY is two words like any others."""

    COMMANDS: ClassVar[set[TokenType]] = set()
    KEYWORDS: ClassVar[dict[str, TokenType]] = {
        **{
            word: kind
            for word, kind in RisingWave.Tokenizer.KEYWORDS.items()
            if kind != TokenType.COMMAND and word not in ("PRIMARY KEY", "SYSTEM", "NAME", "OID", "?::")
        },
        "MATCH_CONDITION": TokenType.MATCH_CONDITION,
    }


def _text(parser: Any, token: Token) -> exp.Expr:
    return exp.Literal.string(token.text)


def _between(kind: type[exp.Binary]) -> Callable[[Any, exp.Expr, exp.Expr], exp.Expr]:
    return lambda parser, left, right: kind(this=left, expression=right)


class RisingWaveQueryParser(QueryParser, RisingWaveParser):
    """Queries and expressions over tables and sources."""

    FUNCTIONS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {
        **{name: made for name, made in RisingWaveParser.FUNCTIONS.items() if name in _AGGREGATES},
        "ROW": lambda values: exp.Tuple(expressions=values),
    }
    FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {
        name: made for name, made in RisingWaveParser.FUNCTION_PARSERS.items() if name in _WITH_WORDS
    }
    FUNC_TOKENS: ClassVar[set[TokenType]] = {*RisingWaveParser.FUNC_TOKENS, TokenType.SESSION}
    _TEXTS: ClassVar[dict[TokenType, Callable[..., exp.Expr]]] = dict.fromkeys(
        (TokenType.BYTE_STRING, TokenType.RAW_STRING, TokenType.HEREDOC_STRING), _text
    )
    STRING_PARSERS: ClassVar[dict[TokenType, Callable[..., exp.Expr]]] = {**RisingWaveParser.STRING_PARSERS, **_TEXTS}
    PRIMARY_PARSERS: ClassVar[dict[TokenType, Callable[..., exp.Expr]]] = {
        **RisingWaveParser.PRIMARY_PARSERS,
        **_TEXTS,
    }
    JSON_OPERATORS: ClassVar[dict[TokenType, Callable[..., exp.Expr]]] = {
        TokenType.ARROW: _between(exp.JSONExtract),
        TokenType.DARROW: _between(exp.JSONExtractScalar),
        TokenType.HASH_ARROW: _between(exp.JSONBExtract),
        TokenType.DHASH_ARROW: _between(exp.JSONBExtractScalar),
        TokenType.PLACEHOLDER: _between(exp.JSONBContains),
    }

    UNARY_PARSERS: ClassVar[dict[TokenType, Callable[..., exp.Expr]]] = {
        **RisingWaveParser.UNARY_PARSERS,
        # Before a value they bind looser than + and -.
        TokenType.RLIKE: lambda self: exp.BitwiseNot(this=self._parse_term()),
        TokenType.PIPE_SLASH: lambda self: exp.Sqrt(this=self._parse_term()),
        TokenType.DPIPE_SLASH: lambda self: exp.Cbrt(this=self._parse_term()),
    }

    QUERY_MODIFIER_PARSERS: ClassVar[dict[TokenType, Callable[..., Any]]] = {
        **without_distribution(RisingWaveParser.QUERY_MODIFIER_PARSERS),
        TokenType.PARTITION_BY: lambda self: self.refuse(
            "PARTITION BY of a query is for streams, which it cuts", fix="GROUP BY k; of a window OVER (PARTITION BY k)"
        ),
    }
    PLACEHOLDER_PARSERS: ClassVar[dict[TokenType, Callable[..., exp.Expr | None]]] = PARAMETERS
    """Where a value begins: behind one a colon is of ``array[2:3]``, and a question mark an operator of JSON."""

    def _parse_interval(self, require_interval: bool = True, parse_function_unit: bool = True) -> exp.Interval | None:
        """``INTERVAL '1 day 02:30:00'``, ``INTERVAL '3' HOUR``, ``'3' HOURS``: the text stays whole."""
        start = self._index
        if not self._match(TokenType.INTERVAL) or not self._match(TokenType.STRING):
            self._retreat(start)
            return None
        written = exp.Literal.string(self._prev.text)
        return exp.Interval(this=written, unit=self._unit())

    def _parse_type(self, parse_interval: bool = True, fallback_to_identifier: bool = False) -> exp.Expr | None:
        """``MAP {'a': 1}`` too, where a value may begin."""
        if self._next is not None and self._next.token_type == TokenType.L_BRACE and self._match(TokenType.MAP):
            return self._parse_column_ops(self._parse_map())
        return super()._parse_type(parse_interval, fallback_to_identifier)

    def _parse_map(self) -> exp.VarMap:
        self._match(TokenType.L_BRACE)
        at_end = self._match(TokenType.R_BRACE)
        pairs = [] if at_end else self._parse_csv(self._parse_map_pair)
        if not at_end and not self._match(TokenType.R_BRACE):
            self.refuse("expected } behind the entries of a map", fix="MAP {'a': 1, 'b': 2}")
        keys, items = ([pair[place] for pair in pairs] for place in (0, 1))
        return self.expression(exp.VarMap(keys=exp.Array(expressions=keys), values=exp.Array(expressions=items)))

    def _parse_map_pair(self) -> tuple[exp.Expr | None, exp.Expr | None]:
        key = self._parse_disjunction()
        if not self._match(TokenType.COLON):
            self.refuse("expected : behind the key of a map", fix="MAP {'a': 1, 'b': 2}")
        return key, self._parse_disjunction()

    def _parse_lambda(self, alias: bool = False) -> exp.Expr | None:
        """``|x| x * 2`` among the arguments of a call."""
        if not self._match(TokenType.PIPE):
            return super()._parse_lambda(alias=alias)
        names = self._parse_csv(self._parse_lambda_arg)
        if not self._match(TokenType.PIPE):
            self.refuse("expected | behind the names of a lambda", fix="array_transform(a, |x| x * 2)")
        return self.expression(
            exp.Lambda(this=self._replace_lambda(self._parse_disjunction(), names), expressions=names)
        )

    def _parse_trim(self) -> exp.Trim:
        """``trim(both 'x' from a)``, ``trim(both from a)``, and PostgreSQL's ``trim(both from a, 'x')``."""
        position = self._prev.text.upper() if self._match_texts(self.TRIM_TYPES) else None
        signs = None if self._match(TokenType.FROM) else self._parse_bitwise()
        if signs is None or self._match(TokenType.FROM):
            text = self._parse_bitwise()
            signs = self._parse_bitwise() if signs is None and self._match(TokenType.COMMA) else signs
        else:
            text, signs = signs, self._parse_bitwise() if self._match(TokenType.COMMA) else None
        return self.expression(exp.Trim(this=text, position=position, expression=signs))

    def _parse_join(self, *args: Any, **kwargs: Any) -> exp.Join | None:
        join = super()._parse_join(*args, **kwargs)
        unnest = None if join is None else unnest_of(join)
        if join is None or unnest is None:
            return join
        return joined_alone(join, unnest) if stands_alone(join, unnest) else array_join(join, unnest)

    def _parse_query_modifiers(self, this: Any) -> Any:
        made = super()._parse_query_modifiers(this)
        if isinstance(made, exp.Select):
            refuse_sides(unnested_items(unnested_head(made)))
        return made

    def _unit(self) -> exp.Var | None:
        """SECONDS is SECOND, as in Flink. PostgreSQL takes ``'10' MINUTES`` for ten seconds, in a column called so."""
        unit = self._curr.text.upper().removesuffix("S") if self._curr is not None else ""
        if unit not in INTERVAL_UNITS:
            return None
        self._advance()
        return exp.var(unit)


class RisingWaveQueries(RisingWave):
    """The dialect that queries over tables and sources are read with."""

    INDEX_OFFSET = 0
    IDENTIFIERS_CAN_START_WITH_DIGIT = True
    Tokenizer = RisingWaveTokenizer
    Parser = RisingWaveQueryParser
