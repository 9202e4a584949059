"""Where topics end, as the broker says when it is asked."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache

from dovetail.broker import clients, topics
from dovetail.broker.address import BrokerAddress
from dovetail.broker.clients import Admin
from dovetail.broker.query_origin import refuse_other_topics
from dovetail.broker.topics import Offsets
from dovetail.changelog.errors import ServiceUnavailable, UnknownName
from dovetail.spark_jobs.stages.job import Job

PAUSE_S = 0.5
NO_ANSWER = (ServiceUnavailable, UnknownName)
"""What asking raises where the broker is away, or has no such topic."""
_MOMENT_S = 1.0
_PARTITIONS_FOR_S = 5.0
"""How long the partitions of a topic are taken for known; new ones are read from their beginning."""


def ends_now(brokers: BrokerAddress, names: Iterable[str]) -> Offsets:
    """Raises one of ``NO_ANSWER``."""
    period = _period()
    return topics.ends(_client(brokers), {topic: _partitions(brokers, topic, period) for topic in names})


def ids_now(brokers: BrokerAddress, names: Iterable[str]) -> Mapping[str, str]:
    """The ids of topics, by name. Raises one of ``NO_ANSWER``."""
    return _topic_ids(brokers, tuple(names), _period())


def unanswered_now(brokers: BrokerAddress, names: Collection[str]) -> tuple[set[str], set[str]]:
    """``topics.unanswered``, as a broker says within a moment. Raises BrokerError."""
    return topics.unanswered(_client(brokers), names, _MOMENT_S)


def awaited_ends(job: Job) -> Offsets:
    """Where the inputs of a query end now. A lost broker is waited for, up to ``broker_wait_s``."""
    target = job.target
    start_s = time.monotonic()
    while True:
        try:
            if ids_now(target.brokers, job.topic_ids) != job.topic_ids:
                _forget()
            refuse_other_topics(job.topic_ids, ids_now(target.brokers, job.topic_ids), job.name)
            return ends_now(target.brokers, job.dataflow.topics)
        except NO_ANSWER as failure:
            if time.monotonic() - start_s > target.broker_wait_s:
                raise ServiceUnavailable(
                    f"the broker did not say for {target.broker_wait_s:g} s where the inputs end: {failure.what}",
                    where=f"brokers {target.brokers}",
                    fix="start the broker; the query resumes where it stopped",
                ) from failure
            time.sleep(PAUSE_S)


def _forget() -> None:
    """What is known of topics may be older than a query whose topics were made again before it began."""
    _partitions.cache_clear()
    _topic_ids.cache_clear()


def _period() -> int:
    return int(time.monotonic() / _PARTITIONS_FOR_S)


@lru_cache(maxsize=4)
def _client(brokers: BrokerAddress) -> Admin:
    return clients.admin(brokers)


@lru_cache(maxsize=1024)
def _partitions(brokers: BrokerAddress, topic: str, _period: int) -> tuple[int, ...]:
    return tuple(topics.partitions(_client(brokers), topic))


@lru_cache(maxsize=1024)
def _topic_ids(brokers: BrokerAddress, names: tuple[str, ...], _period: int) -> Mapping[str, str]:
    return topics.ids(_client(brokers), names)
