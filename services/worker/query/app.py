"""The Faust app of a query: one input topic, one agent, which hands each fetch to its lane."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import faust
from faust.tables import TableManager

from dovetail.broker.address import BrokerAddress
from dovetail.broker.clients import faust_settings
from dovetail.services.worker.lane.fetches import FetchSchema
from dovetail.services.worker.lane.lanes import Lanes
from dovetail.services.worker.query.kafka_credentials import credentials
from dovetail.services.worker.query.transport import FetchConsumer, FetchTransport

_QUEUED_FETCHES = 8
_NEVER_S = 24 * 3600.0


@dataclass(frozen=True)
class AppSettings:
    """max_fetch_records  most records of a request, all partitions together
    fetch_bytes        most bytes of a request for one partition
    session_timeout_s  how long a worker may be silent before its partitions go to others
    """

    max_fetch_records: int = 20_000
    fetch_bytes: int = 4 << 20
    session_timeout_s: float = 10.0


class NoTables(TableManager):
    """Of an app that has no tables. Faust would wait a second for some to be declared."""

    async def sleep(self, n: Any) -> None:
        await super().sleep(0)


def lookup_app(
    identity: str, brokers: BrokerAddress, topic: str, lanes: Lanes, data_dir: Path, settings: AppSettings
) -> Any:
    """The app ``identity``, which is also the name of the consumer group."""
    app = faust.App(
        identity,
        **faust_settings(brokers),
        broker_credentials=credentials(brokers.security),
        store="memory://",
        TableManager=NoTables,
        datadir=str(data_dir),
        web_enabled=False,
        autodiscover=False,
        # Long polls for a topic without records would hold up the others.
        topic_disable_leader=True,
        topic_allow_declare=False,
        consumer_auto_offset_reset="earliest",
        consumer_max_fetch_size=settings.fetch_bytes,
        broker_max_poll_records=settings.max_fetch_records,
        broker_session_timeout=settings.session_timeout_s,
        broker_heartbeat_interval=settings.session_timeout_s / 5,
        # A worker whose source is away does not fetch, and is still alive.
        broker_max_poll_interval=_NEVER_S,
        broker_commit_interval=_NEVER_S,
        stream_wait_empty=False,
    )
    app.transport = FetchTransport(app.conf.broker_consumer, app, lanes)
    fetches = app.topic(topic, schema=FetchSchema(), acks=False)
    # The argument of the same name is accepted and ignored.
    fetches.maxsize = _QUEUED_FETCHES

    async def hand_over(stream: Any) -> None:
        async for event in stream.noack().events():
            fetch = event.value
            restart = lanes.offer(fetch)
            event.ack()
            if restart is not None:
                await cast(FetchConsumer, app.consumer).reread(fetch.partition, restart)

    app.agent(fetches, name=f"{identity}.lanes")(hand_over)
    return app
