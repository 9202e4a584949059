"""Hints to an optimizer: other systems read a comment that begins with a plus sign, and here it would say nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain, pairwise

from sqlglot.tokenizer_core import Token

from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.sql.syntax.faults import fault_at

_COMMENT = re.compile(r"--[^\n]*|/\*")


def refuse_hints(script: str, tokens: Sequence[Token]) -> None:
    """Raises Unsupported for a hint of ``script`` between its tokens."""
    if "/*+" not in script:
        return
    ends = chain([0], chain.from_iterable((token.start, token.end + 1) for token in tokens), [len(script)])
    for start, end in list(pairwise(ends))[::2]:
        at = start
        while (comment := _COMMENT.search(script, at, end)) is not None:
            if script.startswith("/*+", comment.start()):
                raise _refusal(script, comment.start())
            at = script.index("*/", comment.end()) + 2 if comment[0] == "/*" else comment.end()


def _refusal(script: str, offset: int) -> SqlError:
    what = f"a hint is not read: {script[offset : script.index('*/', offset) + 2]}"
    fix = (
        "leave it out: SETTINGS behind the query has what can be chosen, and EXPLAIN the plan; "
        "a comment begins with /* and a blank"
    )
    return fault_at(script, offset, what, fix=fix, kind=Unsupported)
