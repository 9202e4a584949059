"""The dead letters of a view that gets another query: from then on, those of the records that this one could not use.

The new query has read all records itself. One that the old query could not use is among its own dead letters again, or
has been counted: to put the old letter back would count it twice. So the letters of the old query are settled by the
mark of those that were put back, and those of the successor take their place, in the transaction of the difference.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from dovetail.broker.producer_queue import Outgoing, OutgoingMessage
from dovetail.broker.reader import HEADED
from dovetail.changelog.dead_letter import QUERY, mark, topic_of, without_marks
from dovetail.services.session.context import Context
from dovetail.services.session.dead_letters.dead_letter_topic import committed_records
from dovetail.services.session.dead_letters.replayed import Replayed

_PLACE = ["partition", "offset"]


def exchanged_dead_letters(context: Context, view: str, successor: str) -> Iterator[Outgoing]:
    """What is to be written to the topic of dead letters of ``view``; nothing where it is not there."""
    topic = topic_of(view)
    if topic not in context.topics.partitions():
        return
    for partition, offsets in _open(context, topic).items():
        yield Outgoing(topic, [mark(offsets)], with_headers=True, partition=partition)
    for records in committed_records(context, topic_of(successor)):
        taken_over = without_marks(records).to_pylist()
        yield Outgoing(topic, [_renamed(one, view) for one in taken_over], with_headers=True)


def _open(context: Context, topic: str) -> dict[int, list[int]]:
    """Partition → the offsets of the dead letters that were not put back, ascending."""
    replayed, places = Replayed(), [HEADED.empty_table().select(_PLACE)]
    for records in committed_records(context, topic):
        replayed.add(records)
        places.append(without_marks(records).select(_PLACE))
    dead_letters = pa.concat_tables(places)
    waiting = dead_letters.filter(pc.is_null(replayed.times(dead_letters))).sort_by("offset")
    partitions = pc.unique(waiting.column("partition")).to_pylist()
    return {one: waiting.filter(pc.field("partition") == one).column("offset").to_pylist() for one in partitions}


def _renamed(dead_letter: OutgoingMessage, view: str) -> OutgoingMessage:
    headers = [(name, view.encode() if name == QUERY else value) for name, value in dead_letter["headers"]]
    return {"key": dead_letter["key"], "value": dead_letter["value"], "headers": headers}
