"""Which member of a pack an exception came out of, told where Spark passes on nothing but the text of a traceback."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

_NOTE = "[of member {}]"
_NOTED = re.compile(r"\n\[of member (\w+)\]")


@contextmanager
def working_for(key: str) -> Iterator[None]:
    """What is raised in here says that it came from the work for the member ``key``; '': of a query alone."""
    try:
        yield
    except Exception as failure:
        if key:
            blame(failure, key)
        raise


def blame(failure: BaseException, key: str) -> None:
    failure.add_note(_NOTE.format(key))


def at_fault(text: str) -> frozenset[str]:
    """The keys of the members that something has failed for, by the text of a traceback; empty where nobody knows."""
    return frozenset(_NOTED.findall(text))


def without_note(text: str) -> str:
    return _NOTED.sub("", text)


def text_with_notes(failure: BaseException) -> str:
    return "\n".join([str(failure), *getattr(failure, "__notes__", ())])
