"""The clauses of a query, as errors name them."""

from __future__ import annotations

from sqlglot.tokenizer_core import Token, TokenType

BEGINNINGS = {"SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "JOIN", "ON", "USING", "WITH", "UNION"}
"""The words that begin a clause, as far as an error names it."""


def clause_of(tokens: list[Token], token: Token) -> str:
    """The clause that ``token`` stands in: the last word up to it that begins one."""
    clause = "SELECT"
    for before in tokens:
        if before.start > token.start:
            break
        word = before.text.upper()
        if before.token_type not in (TokenType.STRING, TokenType.IDENTIFIER) and word.split(" ")[0] in BEGINNINGS:
            clause = word
    return clause
