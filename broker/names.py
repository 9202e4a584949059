"""Names of the topics that Dovetail makes for itself."""

from __future__ import annotations

from dovetail.changelog.dead_letter import topic_of as dead_letter_topic

MARKS_TOPIC = "dovetail.marks"
"""Nobody writes to it: commit marks are offsets of it."""
MARKS_PARTITIONS = 64
"""It gets more where a query has more buckets."""


def memo_topic(query: str) -> str:
    """The topic from which the memo of a query is restored, partition by partition of its input."""
    return f"{query}.memo"


def topics_of_query(query: str, output: str) -> list[str]:
    """All topics that belong to a query and to nothing else, where nobody else knows its ``output`` topic."""
    return [output, memo_topic(query), dead_letter_topic(query)]
