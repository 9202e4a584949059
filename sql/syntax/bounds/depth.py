"""Statements whose depth is more than can be followed."""

from __future__ import annotations

from changelog.errors import SqlError


def too_deep() -> SqlError:
    """A statement whose brackets, or terms of AND and OR, are more than can be followed."""
    return SqlError(
        "the statement is nested too deeply, or has too many terms",
        where="the statement",
        fix="nest fewer brackets; in place of a long list of terms, join with table(x)",
    )
