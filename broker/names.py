"""Names of the topics that Dovetail makes for itself."""

from __future__ import annotations


def memo_topic(query: str) -> str:
    """The topic from which the memo of a query is restored, partition by partition of its input."""
    return f"{query}.memo"
