"""Queries that live as long as the session that looks at their rows: a SELECT.

The session says every few seconds that it is there. A query of one that is not, because it was killed, is dropped by
whoever runs it, and its topics go with it: nobody else knows their names.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress

from dovetail.broker import clients, topics
from dovetail.broker.address import BrokerAddress
from dovetail.broker.names import topics_of_query
from dovetail.changelog.errors import UnknownName
from dovetail.runtime.clock import now_ms
from dovetail.runtime.logs.query_logs import QueryLog, QueryLogFiles
from dovetail.runtime.query_plan import view_to_succeed
from dovetail.runtime.staleness import Staleness
from dovetail.runtime.succession import settle
from dovetail.sql.catalog import Catalog, Desired, Query

RENEWED_EVERY_S = 5.0
LEASE_S = 30.0
_LOG = logging.getLogger("dovetail.leases")


def lease_from_now() -> int:
    """``Query.lease_ms`` of one that somebody answers for now."""
    return now_ms() + int(LEASE_S * 1000)


class Leases:
    """The leased queries of a catalog, as a reconciler sees them. A lease runs out where it was not renewed for its
    length, whatever the time of day is here or there.
    """

    def __init__(
        self,
        catalog: Catalog,
        brokers: BrokerAddress,
        logs: QueryLogFiles,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._catalog = catalog
        self._brokers = brokers
        self._logs = logs
        self._silence = Staleness(clock)

    def desired(self, query: Query) -> Desired:
        """What is wanted of a query: that it be dropped, where its lease has run out."""
        if not query.lease_ms:
            return query.desired
        dropped = query.desired is Desired.DROPPED
        if not dropped and self._silence.seconds(query.id, query.lease_ms) <= LEASE_S:
            return query.desired
        if view_to_succeed(query):
            # Its view may stand still for it.
            settle(self._catalog, self._brokers, query)
        if dropped:
            return Desired.DROPPED
        QueryLog(_LOG, query.name).warning("its session is gone")
        with suppress(UnknownName):
            self._catalog.want(query.name, Desired.DROPPED, now_ms=now_ms())
        return Desired.DROPPED

    def cleared(self, query: Query) -> bool:
        """Delete log and topics of a dropped query that was leased; False where the broker does not answer."""
        if not query.lease_ms:
            return True
        self._silence.forget(query.id)
        self._logs.remove(query.name)
        return topics.delete(clients.admin(self._brokers), topics_of_query(query.name, query.topic))
