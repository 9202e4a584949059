"""The dialect of queries: ClickHouse's as sqlglot knows it, and what Timeplus and RisingWave add to it.

Only queries and expressions are parsed by sqlglot; the statements around them have a grammar of their own, in
``sql.syntax.grammar``, over the same tokens. Added here:

- durations written ``10s``, ``2m``, ``1h`` (the same as ``INTERVAL '10' SECOND``);
- joins in one canonical form, whatever the order of the words: ``Join.method`` is '', 'ASOF', 'LATEST', 'NATURAL' or
  'ANY', ``Join.side`` is '', 'LEFT', 'RIGHT' or 'FULL', ``Join.kind`` is '', 'INNER', 'OUTER', 'SEMI', 'ANTI' or
  'CROSS'. ASOF LATEST is LATEST; ALL is the default and leaves no trace;
- ``[LEFT] ARRAY JOIN a AS x, b`` among the joins: ``Join.kind`` is 'ARRAY', ``Join.this`` the first array,
  ``Join.expressions`` are the others;
- ``FOR SYSTEM_TIME AS OF x``, or ``AS OF x`` where x is a literal or a call, before or after the alias:
  ``Table.args["version"]``, an ``exp.Version``;
- nothing is taken for parsed that was only skipped (sqlglot's ``exp.Command``), and USING takes bare names;
- a call stays what is written, a name and its arguments, aggregates apart: what it means is for the registry of its
  dialect in ``sql.functions``;
- ``PARTITION BY k`` of a query of Timeplus: ``Select.args["distribute"]``;
- ``raw:a.b`` is a member of JSON: ``exp.JSONExtractScalar`` with the names of the path as its expressions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, ClassVar, NoReturn, TypeVar

from sqlglot import exp
from sqlglot.dialects.clickhouse import ClickHouse
from sqlglot.errors import ParseError
from sqlglot.parser import Parser
from sqlglot.parsers.clickhouse import ClickHouseParser
from sqlglot.tokenizer_core import Token, TokenType

from dovetail.changelog.errors import SqlError
from dovetail.sql.syntax.calls import function_name
from dovetail.sql.syntax.intervals import UNIT_WORDS

DURATION = re.compile(r"(\d+)(ns|us|ms|s|m|h|d|w|M|q|y)")
DURATION_UNITS = {
    "ns": "NANOSECOND",
    "us": "MICROSECOND",
    "ms": "MILLISECOND",
    "s": "SECOND",
    "m": "MINUTE",
    "h": "HOUR",
    "d": "DAY",
    "w": "WEEK",
    "M": "MONTH",
    "q": "QUARTER",
    "y": "YEAR",
}

Made = TypeVar("Made", bound=exp.Expr)
_VALUES = (TokenType.STRING, TokenType.NUMBER, TokenType.PARAMETER, TokenType.PLACEHOLDER, TokenType.CURRENT_TIMESTAMP)
_NAMES = (*_VALUES, TokenType.VAR, TokenType.TIMESTAMP, TokenType.TIMESTAMPTZ)
"""What a moment begins with, alone; and before a bracket, or a text."""

_MOST_AGAIN = 10_000
_MOST_TIMES = 20
"""So many tokens may be read again, and so many times as many as there are."""
ARRAY = "ARRAY"
"""The kind of an ARRAY JOIN."""
_KINDS = frozenset({"INNER", "OUTER", "SEMI", "ANTI", "CROSS"})
_SIDES = frozenset({"LEFT", "RIGHT", "FULL"})
_METHODS = frozenset({"ASOF", "LATEST", "NATURAL", "ANY", "ALL"})
_JOIN_WORDS = _KINDS | _SIDES | _METHODS | {ARRAY}


AGGREGATES = (
    "COUNT", "SUM", "AVG", "MIN", "MAX", "ANY_VALUE", "BOOL_AND", "BOOL_OR", "LOGICAL_AND", "LOGICAL_OR", "COUNT_IF",
    "APPROX_COUNT_DISTINCT", "APPROX_DISTINCT", "QUANTILE", "QUANTILE_CONT", "QUANTILE_DISC", "PERCENTILE_CONT",
    "PERCENTILE_DISC", "MEDIAN", "STDDEV", "STDDEV_POP", "STDDEV_SAMP", "VARIANCE", "VAR_POP", "VAR_SAMP", "CORR",
    "COVAR_POP", "COVAR_SAMP", "ARRAY_AGG", "STRING_AGG", "ARG_MAX", "ARG_MIN", "MAX_BY", "MIN_BY", "FIRST", "LAST",
    "MODE", "GROUP_CONCAT", "LISTAGG", "ROW_NUMBER", "RANK", "DENSE_RANK", "LAG", "LEAD", "FIRST_VALUE", "LAST_VALUE",
    "NTH_VALUE", "NTILE", "PERCENT_RANK", "CUME_DIST",
)  # fmt: skip
"""The functions that sqlglot knows as such: aggregates, and those of windows."""

_FORMS = (
    *("CAST", "TRY_CAST", "EXTRACT", "SUBSTRING", "TRIM", "POSITION", "OVERLAY", "AND", "OR", "XOR"),
    *("MEDIAN", "ARG_MAX", "ARG_MIN", "MAX_BY", "MIN_BY", "STRING_AGG"),
)
"""Functions whose arguments are more than a list: ``CAST(x AS y)``."""
_OF_LEVELS = (
    *("QUANTILE", "QUANTILES", "QUANTILE_EXACT", "QUANTILEEXACT", "QUANTILE_TDIGEST", "QUANTILE_TIMING"),
    *("GROUP_ARRAY", "GROUP_UNIQ_ARRAY", "TOP_K", "MIN_K", "MAX_K"),
)
_LEVELLED = (*_OF_LEVELS, *(f"{name}_IF" for name in _OF_LEVELS))
"""Aggregates with levels or sizes: ``quantile(0.9)(x)``, or ``quantile(x, 0.9)``."""


def as_written(functions: Mapping[str, Callable[..., Any]], names: Collection[str]) -> dict[str, Callable[..., Any]]:
    """The functions of a parser that it may know by name; all others stay a name and its arguments."""
    return {name: made for name, made in functions.items() if name in names}


def without_distribution(clauses: Mapping[TokenType, Callable[..., Any]]) -> dict[TokenType, Callable[..., Any]]:
    """The clauses of a parser without DISTRIBUTE BY: its place in the tree is that of PARTITION BY."""
    return {token: read for token, read in clauses.items() if token != TokenType.DISTRIBUTE_BY}


def too_deep() -> SqlError:
    """A statement whose brackets, or terms of AND and OR, are more than can be followed."""
    return SqlError(
        "the statement is nested too deeply, or has too many terms",
        where="the statement",
        fix="nest fewer brackets; in place of a long list of terms, join with table(x)",
    )


class QueryFault(ParseError):
    """A parse error that knows its token: the one it is about, or the last one where the text ends too early.

    ``fix`` is None where sqlglot describes it, whose words are not for users.
    """

    def __init__(self, description: str, token: Token, *, at_end: bool, fix: str | None = None) -> None:
        super().__init__(description)
        self.description = description
        self.token = token
        self.at_end = at_end
        self.fix = fix


_APART = frozenset(("PRIMARY KEY", "SYSTEM", "?::"))
"""What is no word of its own: in ``?::int`` a parameter is cast."""


class DovetailTokenizer(ClickHouse.Tokenizer):
    """ClickHouse's tokens; no statement is swallowed whole, and PRIMARY KEY is two words like any others.

    ``#`` begins no comment, since ``a # b`` is of the bits of two numbers in tables.
    """

    COMMANDS: ClassVar[set[TokenType]] = set()
    COMMENTS: ClassVar[list[str | tuple[str, str]]] = ["--", "#!", ("/*", "*/")]
    KEYWORDS: ClassVar[dict[str, TokenType]] = {
        **{word: kind for word, kind in ClickHouse.Tokenizer.KEYWORDS.items() if word not in _APART},
        "LOW_CARDINALITY": TokenType.LOWCARDINALITY,
        "FIXED_STRING": TokenType.FIXEDSTRING,
        "MATCH_CONDITION": TokenType.MATCH_CONDITION,
    }


def with_intervals(tokens: list[Token]) -> list[Token]:
    """``10s`` becomes ``INTERVAL '10' SECOND``; after a dot or AS it is a name."""
    expanded: list[Token] = []
    for token in tokens:
        duration = DURATION.fullmatch(token.text) if token.token_type == TokenType.VAR else None
        if duration is None or (expanded and expanded[-1].token_type in (TokenType.DOT, TokenType.ALIAS)):
            expanded.append(token)
            continue
        count, unit = duration.groups()
        for kind, text in (
            (TokenType.INTERVAL, "INTERVAL"),
            (TokenType.STRING, count),
            (TokenType.VAR, DURATION_UNITS[unit]),
        ):
            expanded.append(Token(kind, text, token.line, token.col, token.start, token.end))
    return expanded


class QueryParser(Parser):
    """What is added to the parser of a dialect; every error is a ``QueryFault``."""

    def parse(self, raw_tokens: list[Token], sql: str) -> list[exp.Expr | None]:
        return super().parse(with_intervals(raw_tokens), sql)

    def reset(self) -> None:
        super().reset()
        self._again = 0

    def _retreat(self, index: int) -> None:
        """Back to a token, to read on in another way. Where that happens at each level, work doubles with each."""
        self._again += max(self._index - index, 0)
        if self._again > _MOST_AGAIN + _MOST_TIMES * len(self._tokens):
            raise too_deep()
        super()._retreat(index)

    def raise_error(self, message: str, token: Token | None = None) -> NoReturn:
        raise QueryFault(message, token or self._curr or self._tokens[-1], at_end=not (token or self._curr))

    def refuse(self, what: str, token: Token | None = None, fix: str = "") -> NoReturn:
        """As ``raise_error``, in words for the user."""
        raise QueryFault(what, token or self._curr or self._tokens[-1], at_end=not (token or self._curr), fix=fix)

    def _parse_projections(self) -> tuple[list[exp.Expr], list[exp.Expr] | None]:
        return self._parse_csv(self._parse_projection), None

    def _parse_projection(self) -> exp.Expr | None:
        first = self._curr
        item = super()._parse_expression()
        if item is not None:
            item.meta[_WRITTEN_AT] = slice(first.start, self._prev.end + 1)
        return item

    def _parse_alias(self, this: exp.Expr | None, explicit: bool = False) -> exp.Expr | None:
        if this is not None and not explicit:
            self._refuse_length_without_interval(this)
        return super()._parse_alias(this, explicit)

    def _refuse_length_without_interval(self, value: exp.Expr) -> None:
        """``t + 1 MINUTE`` would be a second later, under the name MINUTE."""
        unit, number = self._curr, self._prev
        if unit is None or unit.token_type == TokenType.IDENTIFIER or unit.text.upper() not in UNIT_WORDS:
            return
        added = isinstance(value, exp.Add | exp.Sub)
        if number.token_type == TokenType.NUMBER or (added and number.token_type == TokenType.STRING):
            count, length = number.text, f"INTERVAL '{number.text}' {unit.text}"
        elif added:
            count = value.expression.sql()
            length = f"INTERVAL {count} {unit.text}, over tables {count} * INTERVAL '1' {unit.text}"
        else:
            return
        what = f"{count} {unit.text} is no length of time as it stands"
        raise QueryFault(what, unit, at_end=False, fix=f"{length}; or, as a name, AS {unit.text}")

    def validate_expression(self, expression: Made, args: list[Any] | None = None) -> Made:
        """A call with all of its arguments: what builds one passes over those that it knows no place for."""
        made = super().validate_expression(expression, args)
        for argument in args or ():
            if isinstance(argument, exp.Expr) and not _is_part(argument, made):
                self.refuse(f"{function_name(made)} takes fewer arguments", fix=f"leave out {argument.sql()}")
        return made

    def _parse_position(self, haystack_first: bool = False) -> exp.StrPosition:
        given = self._parse_csv(self._parse_bitwise)
        if len(given) == 1 and self._match(TokenType.IN):
            return self.expression(exp.StrPosition(this=self._parse_bitwise(), substr=given[0]))
        if len(given) not in (2, 3):
            self.refuse(f"position takes 2 or 3 arguments, not {len(given)}", fix="position(text, part)")
        text, part = given[:2] if haystack_first else (given[1], given[0])
        return self.expression(exp.StrPosition(this=text, substr=part, position=given[2] if given[2:] else None))

    def _parse_between(self, this: exp.Expr | None) -> exp.Between:
        """With the AND that sqlglot does without: ``x BETWEEN y - 1 HOUR AND z`` would go up to a column HOUR."""
        of = exp.Paren(this=this) if isinstance(this, exp.Is | exp.NullSafeEQ | exp.NullSafeNEQ) else this
        symmetric = True if self._match_text_seq("SYMMETRIC") else None
        if symmetric is None:
            self._match_text_seq("ASYMMETRIC")
        low = self._parse_bitwise()
        if not self._match(TokenType.AND):
            self.raise_error("Expecting AND")
        return self.expression(exp.Between(this=of, low=low, high=self._parse_bitwise(), symmetric=symmetric))

    def _parse_ordered(self, parse_method: Callable[[], exp.Expr | None] | None = None) -> exp.Ordered | None:
        def term() -> exp.Expr | None:
            found = (parse_method or self._parse_disjunction)()
            ahead = [token.token_type for token in self._tokens[self._index : self._index + 2]]
            if ahead == [TokenType.ASC, TokenType.DESC]:
                self.refuse("ASC and DESC are two orders of one term", self._next, fix="ORDER BY k, or k DESC")
            return found

        return super()._parse_ordered(term)

    def _parse_command(self) -> NoReturn:
        self.refuse("this is no query", self._prev)

    def _parse_as_command(self, start: Token) -> NoReturn:
        self.refuse("this is no query", start)

    def _parse_types(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        """A type is a word: sqlglot would read what stands in quotes as SQL of its own."""
        quoted = self._curr is not None and self._curr.token_type == TokenType.IDENTIFIER
        return None if quoted else super()._parse_types(*args, **kwargs)

    def _parse_table_alias(self, alias_tokens: Collection[TokenType] | None = None) -> exp.TableAlias | None:
        if self._at_join_words():
            return None
        return super()._parse_table_alias(alias_tokens=alias_tokens)

    def _at_join_words(self) -> bool:
        """Whether the words from here on lead up to JOIN: then the first is no alias (``l LATEST JOIN r``)."""
        return self._join_words() is not None

    def _join_words(self) -> list[str] | None:
        """The words from here to JOIN; None where they do not lead there."""
        words: list[str] = []
        for token in self._tokens[self._index :]:
            if token.token_type == TokenType.JOIN:
                return words
            if token.text.upper() not in _JOIN_WORDS:
                return None
            words.append(token.text.upper())
        return None

    def _parse_join(self, *args: Any, **kwargs: Any) -> exp.Join | None:
        words = self._join_words() or []
        return self._parse_array_join(words) if ARRAY in words else super()._parse_join(*args, **kwargs)

    def _parse_array_join(self, words: list[str]) -> exp.Join:
        self.refuse(
            "ARRAY JOIN is for streams and dictionaries",
            self._curr,
            fix="SELECT k, x FROM t CROSS JOIN UNNEST(a) AS u(x)",
        )

    def _parse_join_parts(self) -> tuple[Token | None, Token | None, Token | None]:
        if not self._at_join_words():
            return None, None, None
        method: Token | None = None
        side: Token | None = None
        kind: Token | None = None
        while self._curr.token_type != TokenType.JOIN:
            word = self._curr.text.upper()
            if word in _SIDES:
                side = self._once(side)
            elif word in _KINDS:
                kind = self._once(kind)
            elif word != "ALL":
                method = (
                    self._curr if method and {word, method.text.upper()} == {"ASOF", "LATEST"} else self._once(method)
                )
                if method.text.upper() == "ASOF" and self._prev and self._prev.text.upper() == "LATEST":
                    method = self._prev
            self._advance()
        return method, side, kind

    def _once(self, earlier: Token | None) -> Token:
        if earlier is not None:
            words = [earlier.text.upper(), self._curr.text.upper()]
            self.refuse(
                f"{' and '.join(words)} cannot stand before one JOIN", fix=f"{words[0]} JOIN, or {words[1]} JOIN"
            )
        return self._curr

    def _parse_using_identifiers(self) -> list[exp.Expr]:
        names = self._parse_wrapped_csv(self._parse_column, optional=True)
        for name in names:
            if not isinstance(name, exp.Column) or name.table:
                self.refuse(f"USING takes bare column names, not {name.sql()}", self._prev, fix="a JOIN b USING (k)")
        return [name.this for name in names]

    def _parse_question_mark(self) -> exp.Expr:
        return _placed(self.expression(exp.Placeholder()), self._prev)

    def _parse_named_parameter(self) -> exp.Expr | None:
        """``:name``; not the end of a slice, ``array[:n]``, nor a member, ``raw:a``."""
        colon, before, named = self._prev, self._tokens[max(self._index - 2, 0)], self._curr
        touching = bool(named) and named.start == colon.end + 1 and named.text.isidentifier()
        of_a_value = before.end + 1 == colon.start and (before.text[-1:].isalnum() or before.text[-1:] in (*'_"`)]',))
        if before.token_type == TokenType.L_BRACKET or of_a_value or not touching:
            return None
        self._advance()
        return _placed(self.expression(exp.Placeholder(this=named.text)), colon)

    def _parse_colon_as_variant_extract(self, this: exp.Expr | None) -> exp.Expr | None:
        """``raw:a.b``, without blanks: ``x ? a : b`` is a choice."""
        if not isinstance(this, exp.Column | exp.Paren) or not self._at_member():
            return this
        self._advance()
        names = [self._member()]
        while self._match(TokenType.DOT):
            names.append(self._member())
        return self.expression(exp.JSONExtractScalar(this=this, expression=exp.Array(expressions=names)))

    def _at_member(self) -> bool:
        colon, before, after = self._curr, self._prev, self._next
        touching = colon.token_type == TokenType.COLON and before.end + 1 == colon.start
        return bool(touching and after and colon.end + 1 == after.start)

    def _member(self) -> exp.Expr:
        name = self._parse_id_var(any_token=True)
        if name is None:
            self.refuse("expected the name of a member after :", fix="raw:a.b")
        return exp.Literal.string(name.name)

    def _parse_star_ops(self) -> exp.Expr | None:
        """EXCEPT and REPLACE, in either order."""
        star = super()._parse_star_ops()
        if isinstance(star, exp.Star) and star.args.get("replace") and not star.args.get("except_"):
            star.set("except_", self._parse_star_op("EXCEPT", "EXCLUDE"))
        return star

    def _parse_table(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        table = super()._parse_table(*args, **kwargs)
        if isinstance(table, exp.Table) and table.alias and not table.args.get("version"):
            table.set("version", self._parse_version())
        return table

    def _parse_version(self) -> exp.Version | None:
        if not self._is_as_of():
            return super()._parse_version()
        self._advance(2)
        return self.expression(exp.Version(this="TIMESTAMP", kind="AS OF", expression=self._parse_bitwise()))

    def _is_as_of(self) -> bool:
        """Whether AS OF and a moment follow: ``t AS of`` alone gives t a name."""
        words = [token.text.upper() for token in self._tokens[self._index : self._index + 2]]
        after = self._tokens[self._index + 2 : self._index + 4]
        if words != ["AS", "OF"] or not after:
            return False
        called = len(after) == 2 and after[1].token_type in (TokenType.L_PAREN, TokenType.STRING)
        return after[0].token_type in (_NAMES if called else _VALUES)


def _is_part(part: exp.Expr | None, whole: exp.Expr) -> bool:
    while part is not None and part is not whole:
        part = part.parent
    return part is whole


_WRITTEN_AT, _SPELLING = "written at", "spelling"
"""The members of an item's meta that have its place in the script, and its text."""


def keep_spelling(query: exp.Expr, script: str) -> None:
    """Of the outermost select list alone: columns of a subquery are called by what their tree prints."""
    while isinstance(query, exp.SetOperation):
        query = query.this
    for item in query.expressions if isinstance(query, exp.Select) else ():
        if _WRITTEN_AT in item.meta:
            item.meta[_SPELLING] = script[item.meta[_WRITTEN_AT]]


def spelling(item: exp.Expr) -> str:
    """How the user wrote an item of the outermost select list; '' for others."""
    return str(item.meta.get(_SPELLING, ""))


PARAMETER_AT = "parameter at"
"""The member of a placeholder's meta that has its place in the script."""


def _placed(placeholder: exp.Expr, token: Token) -> exp.Expr:
    placeholder.meta[PARAMETER_AT] = token.start
    return placeholder


PARAMETERS: dict[TokenType, Callable[..., exp.Expr | None]] = {
    TokenType.PLACEHOLDER: lambda self: self._parse_question_mark(),
    TokenType.COLON: lambda self: self._parse_named_parameter(),
}


class DovetailParser(QueryParser, ClickHouseParser):
    """Queries and expressions of Timeplus."""

    PLACEHOLDER_PARSERS: ClassVar[dict[TokenType, Callable[..., exp.Expr | None]]] = {
        **ClickHouseParser.PLACEHOLDER_PARSERS,
        **PARAMETERS,
    }

    FUNCTIONS: ClassVar[dict[str, Callable[..., Any]]] = as_written(ClickHouseParser.FUNCTIONS, AGGREGATES)
    FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
        **as_written(ClickHouseParser.FUNCTION_PARSERS, _FORMS),
        **dict.fromkeys(_LEVELLED, lambda self: self._parse_levelled()),
    }
    FUNC_TOKENS: ClassVar[set[TokenType]] = {*ClickHouseParser.FUNC_TOKENS, TokenType.SESSION}
    QUERY_MODIFIER_PARSERS: ClassVar[dict[TokenType, Callable[..., Any]]] = {
        **without_distribution(ClickHouseParser.QUERY_MODIFIER_PARSERS),
        TokenType.PARTITION_BY: lambda self: ("distribute", self._parse_substreams()),
    }
    COLON_IS_VARIANT_EXTRACT: ClassVar[bool] = True

    def _parse_position(self, haystack_first: bool = True) -> exp.StrPosition:
        return super()._parse_position(haystack_first=True)

    def _parse_substreams(self) -> exp.Distribute:
        """The keys of PARTITION BY, each value of which is a stream of its own."""
        self._advance()
        return self.expression(exp.Distribute(expressions=self._parse_csv(self._parse_disjunction)))

    def _parse_array_join(self, words: list[str]) -> exp.Join:
        if words not in ([ARRAY], ["LEFT", ARRAY], ["INNER", ARRAY]):
            self.refuse(f"there is no {' '.join(words)} JOIN", self._curr, fix="ARRAY JOIN a, or LEFT ARRAY JOIN a")
        for _ in (*words, "JOIN"):
            self._advance()
        arrays = self._parse_csv(self._parse_joined_array)
        if not arrays:
            self.refuse("expected an array after ARRAY JOIN", fix="SELECT k, x FROM s ARRAY JOIN a AS x")
        side = "LEFT" if "LEFT" in words else None
        return self.expression(exp.Join(this=arrays[0], expressions=arrays[1:], kind=ARRAY, side=side))

    def _parse_levelled(self) -> exp.Expr:
        """``f(levels)(x)``, or ``f(x, levels)``: the levels are its expressions, what it is of its parameters."""
        name = self._tokens[self._index - 2].text
        given = self._parse_csv(self._parse_lambda)
        of = self._parse_func_params()
        if not of:
            # The last one of ``quantile_if(x, 0.9, condition)`` is the condition.
            end = len(given) - 1 if name.upper().endswith("_IF") and len(given) > 1 else len(given)
            of, given = [*given[:1], *given[end:]], given[1:end]
            if not given:
                return self.expression(exp.Anonymous(this=name, expressions=of))
        levels = given
        return self.expression(exp.ParameterizedAgg(this=name, expressions=levels, params=of))

    def _parse_joined_array(self) -> exp.Expr | None:
        array = self._parse_disjunction()
        return array if array is None or self._at_join_words() else self._parse_alias(array)


class Dovetail(ClickHouse):
    """The dialect that ``sql.syntax.parse`` reads queries with."""

    INDEX_OFFSET = 0
    SET_OP_DISTINCT_BY_DEFAULT = dict.fromkeys((exp.Union, exp.Intersect, exp.Except), False)
    """UNION alone is UNION ALL, INTERSECT alone INTERSECT ALL."""
    Tokenizer = DovetailTokenizer
    Parser = DovetailParser
