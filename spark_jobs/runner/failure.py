"""What Spark says when a query fails, told as an error of Dovetail."""

from __future__ import annotations

import re

from pyspark.errors import StreamingQueryException

import changelog.errors
from changelog.errors import DovetailError, InternalError, ServiceUnavailable

# A worker's error arrives as the text of its traceback: the class, then what, where and fix as ``str`` gives them.
_TYPED = re.compile(
    r"^changelog\.errors\.(?P<kind>\w+): (?P<what>.*?)"
    r"(?:\n  where: (?P<where>.*?))?(?:\n  fix:   (?P<fix>.*?))?(?=\n SQLSTATE|\n\s*\n|\n\s+at |\Z)",
    re.MULTILINE | re.DOTALL,
)
_BROKER = re.compile(
    r"org\.apache\.kafka\.common\.errors\.(?:Timeout|Disconnect|Network|Coordinator|BrokerNotAvailable)\w*Exception[^\n]*"
)


def typed(failure: StreamingQueryException, query: str) -> DovetailError:
    """The DovetailError that ended ``query``: the worker's own where there is one."""
    text = str(failure)
    if found := _TYPED.search(text):
        kind = getattr(changelog.errors, found["kind"])
        error = kind(found["what"], where=_in_query(query, found["where"] or ""), fix=found["fix"] or "")
        assert isinstance(error, DovetailError)
        return error
    if lost := _BROKER.search(text):
        return ServiceUnavailable(
            f"the broker was lost: {lost[0].split(': ', 1)[-1]}",
            where=_in_query(query),
            fix="start the broker; the query resumes where it stopped",
        )
    return InternalError(_shortened(text), where=_in_query(query), fix="see the runner's log for the whole trace")


def _in_query(query: str, place: str = "") -> str:
    return f'query "{query}"' + (f", {place}" if place else "")


def _shortened(text: str, lines: int = 12) -> str:
    """The last lines of the Python traceback if there is one, else the first of the text."""
    before, found, _ = text.partition("\n\n\tat ")
    told = before.strip().splitlines()
    return "\n".join(told[-lines:] if found else told[:lines])
