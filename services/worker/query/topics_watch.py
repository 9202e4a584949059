"""Whether the topics of a lookup query are still those that it began with."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from broker import topics
from broker.query_origin import refuse_other_topics
from changelog.errors import ServiceUnavailable

_LOOK_S = 5.0


class TopicsWatch:
    """Looks every few seconds at its input, its memo and what it has read once.

    A topic that is gone is waited for: once it is there again, it is another one.
    """

    def __init__(self, query: str, known: Mapping[str, str], client: AdminClient) -> None:
        self._query = query
        self._known = known
        self._client = client
        self._next_s = 0.0

    def look(self, now_s: float) -> None:
        """Raises RecordsGone for a topic that was deleted and made again."""
        if now_s < self._next_s:
            return
        self._next_s = now_s + _LOOK_S
        try:
            now = topics.ids_again(self._client, self._known)
        except (KafkaException, ServiceUnavailable, TimeoutError):
            return
        refuse_other_topics(self._known, now, self._query)
