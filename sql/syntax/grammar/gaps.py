"""Gaps in a query: ``SELECT a, FROM t``, ``ON AND``, ``t AS``. sqlglot reads on over them; here they are errors."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from dovetail.sql.syntax.cursor import Cursor, is_name
from dovetail.sql.syntax.dialect import ARRAY
from dovetail.sql.syntax.grammar.query_clauses import clause_of

_QUOTED = (TokenType.STRING, TokenType.IDENTIFIER)
_LEADING = frozenset({
    *("SELECT", "FROM", "WHERE", "ON", "USING", "HAVING", "GROUP BY", "ORDER BY", "LIMIT", "JOIN", "UNION"),
    *("AND", "OR", "NOT", "IN", "LIKE", "BETWEEN", "AS", ",", "=", "<", ">", "<=", ">=", "<>", "!="),
})  # fmt: skip
"""Words after which something must come."""
_CLOSING = frozenset({
    *("", ")", ",", "FROM", "WHERE", "ON", "USING", "HAVING", "GROUP BY", "ORDER BY", "LIMIT", "JOIN", "UNION"),
    *("AND", "OR", "AS", "INNER", "CROSS"),
})  # fmt: skip
"""Words that cannot be this something; '' is the end."""
_JOINED = frozenset(("LEFT", "RIGHT", "FULL", "OUTER", "NATURAL", "ASOF", "LATEST", "ANTI", "SEMI"))
"""Words that cannot be this something where JOIN follows them."""
_NESTED = ("STRUCT", "ARRAY", "MAP")
"""Types whose parts stand between < and >."""
_AFTER_STAR = _CLOSING | {"EXCEPT", "EXCLUDE", "REPLACE"}


def check_gaps(cursor: Cursor, tokens: list[Token]) -> None:
    """Raises where a word that needs something after it has nothing."""
    words = ["", *(_word(token) for token in tokens), "", ""]
    types = 0
    for index, token in enumerate(tokens, start=1):
        before, word, after = words[index - 1 : index + 2]
        if before == ".":
            continue
        if word == "<" and before in _NESTED:
            types += 1
        elif types and word in (">", ">>"):
            types = max(0, types - len(word))
            continue
        if word in _LEADING and (after in _CLOSING or (after in _JOINED and words[index + 2] == "JOIN")):
            cursor.clause = clause_of(tokens, token)
            cursor.fail(f"something is missing between {word} and {after or 'the end'}", offset=token.end + 1)
        if word == "(" and after == ",":
            cursor.fail("something is missing between ( and ,", offset=token.end + 1)
        if word == "*" and before in ("SELECT", "DISTINCT", ",") and after not in _AFTER_STAR:
            named = f"SELECT * FROM {cursor.written(tokens[index])}; " if is_name(tokens[index]) else ""
            fix = f"{named}SELECT * EXCEPT (a, b) for all columns but some"
            cursor.fail(f"unexpected {after} after *", fix=fix, offset=token.end + 1)


def _word(token: Token) -> str:
    """The token in upper case; a literal or a quoted name is some word that matters nowhere."""
    return "quoted" if token.token_type in _QUOTED else " ".join(str(token.text).upper().split())


def check_parts(cursor: Cursor, parsed: exp.Query, start: int) -> None:
    """Raises where a part of the tree is there that no query has, or is not there that every query has."""
    for part in parsed.find_all(exp.Select, exp.CTE, exp.From, exp.Join):
        match part:
            case exp.Select():
                _check_select(cursor, part, start)
            case exp.CTE() if not isinstance(part.this, exp.Query):
                fix = f"WITH {part.alias} AS (SELECT ..)"
                cursor.fail(f'"{part.alias}" in WITH is no query', fix=fix, offset=start)
            case exp.Join() if part.kind == ARRAY:
                pass
            case exp.Join(this=exp.Lateral(this=exp.Subquery())):
                if part.this.args.get("cross_apply") is not None:
                    fix = "CROSS JOIN LATERAL (..) AS x, or LEFT JOIN LATERAL (..) AS x ON true"
                    cursor.fail("APPLY is not supported", fix=fix, offset=start)
            case exp.From(this=exp.Unnest()):
                fix = "FROM t CROSS JOIN UNNEST(t.a) AS u(x), or SELECT unnest(a) FROM t"
                cursor.fail("UNNEST follows the table whose arrays it takes", fix=fix, offset=start)
            case exp.Join(this=exp.Unnest()):
                arrays = ", ".join(one.sql(dialect="clickhouse") for one in part.this.expressions)
                cursor.fail("UNNEST is for tables", fix=f"FROM s ARRAY JOIN {arrays} AS x, of a stream s", offset=start)
            case exp.From() | exp.Join() if not isinstance(
                part.this, exp.Table | exp.Subquery | exp.Values | exp.Final
            ):
                cursor.fail(f"{part.this.sql()} is no stream", fix="FROM a, b or FROM (SELECT ..) AS a", offset=start)


def _check_select(cursor: Cursor, part: exp.Select, start: int) -> None:
    if not part.expressions:
        cursor.fail("a SELECT without columns", fix="SELECT *", offset=start)
    if part.args.get("joins") and not part.args.get("from_"):
        cursor.fail("a JOIN without FROM", fix="SELECT .. FROM a JOIN b ON ..", offset=start)
    if part.args.get("format"):
        fix = "leave it out: dovetail sql -o json, in a shell; over HTTP as the client accepts, docs/serve.md"
        cursor.fail("how rows are written is not said in a query", fix=fix, offset=start)
    if part.args.get("settings"):
        fix = "SELECT .. FROM (SELECT ..) AS x SETTINGS seek_to = 'earliest'"
        cursor.fail("SETTINGS stand at the end of the statement, not in a query within it", fix=fix, offset=start)
