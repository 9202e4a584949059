"""PRINT: the records of a topic, whoever has made it, until Ctrl-C or LIMIT."""

from __future__ import annotations

from contextlib import nullcontext

from dovetail.services.session.context import Context
from dovetail.services.session.result import Live
from dovetail.services.session.tail.topic_views import TopicTail, topic_view
from dovetail.sql.syntax.statements import Print


def print_topic(context: Context, statement: Print) -> Live:
    topic, view = topic_view(context, statement.name)
    tail = TopicTail(context, topic, view, statement.from_beginning, statement.limit)
    place = "from its beginning" if statement.from_beginning else "from now on; FROM BEGINNING shows all there is"
    return Live(nullcontext(tail), (f"{topic}, {place}",), query=False)
