"""``dovetail tail``: the rows of a stream or a view, dead letters, or the records of a topic that is none of these."""

from __future__ import annotations

from dovetail.services.cli.following.followed_rows import followed
from dovetail.services.cli.show import Screen
from dovetail.services.session import Session
from dovetail.services.session.tail.topic_views import TopicTail


def tail_rows(session: Session, screen: Screen, name: str, *, from_beginning: bool, limit: int | None) -> None:
    """Rows from the end of the topic on, or from its beginning; forever, or until ``limit`` rows have come."""
    tail = TopicTail.of(session.context, name, from_beginning=from_beginning, limit=limit)
    screen.note(f"{tail.topic}, {'from its beginning' if from_beginning else 'from now on'}; Ctrl-C ends it")
    with followed(screen, tail, tail.view.wide) as shown:
        for rows in tail.batches():
            shown.add(rows)
