"""The static tables of a query: what their topics hold when the query first starts."""

from __future__ import annotations

import pyarrow as pa

from broker import clients, topics
from broker.address import BrokerAddress
from broker.reader import read_topic
from sql.relations import Stream


def table_of(stream: Stream, brokers: BrokerAddress) -> pa.Table:
    """The content of ``stream`` now: its declared columns and ``_tp_time``."""
    ends = topics.end_offsets(clients.admin(brokers), [stream.topic])[stream.topic]
    return read_topic(brokers, stream.schema, stream.topic, ends).rows
