"""PRINT: the records of a topic, whoever has made it, until Ctrl-C or LIMIT."""

from __future__ import annotations

from contextlib import nullcontext

from dovetail.services.session.context import Context
from dovetail.services.session.result import Live
from dovetail.services.session.tail.topic_views import TopicTail
from dovetail.sql.syntax.statements import Print


def print_topic(context: Context, statement: Print) -> Live:
    tail = TopicTail.of(context, statement.name, from_beginning=statement.from_beginning, limit=statement.limit)
    place = "from its beginning" if statement.from_beginning else "from now on; FROM BEGINNING shows all there is"
    return Live(nullcontext(tail), (f"{tail.topic}, {place}",), query=False)
