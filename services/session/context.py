"""What the statements of a session work with."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from services.session.kafka_topics import Topics
from services.session.writing import TopicWriter
from services.settings import Settings
from sql.catalog import Catalog

Say = Callable[[str], None]
"""Takes a line of progress."""


def silent(_line: str) -> None:
    """Progress that nobody reads."""


@dataclass(frozen=True)
class Context:
    """settings      of this process, with the addresses of what runs
    runner_fault  why no query can run now ('' if the runner is there, or elsewhere)
    say           takes lines of progress of long work
    """

    settings: Settings
    catalog: Catalog
    brokers: str
    runner_fault: Callable[[], str] = lambda: ""
    say: Say = silent

    @cached_property
    def topics(self) -> Topics:
        return Topics(self.brokers, self.settings.broker_timeout_s)

    @cached_property
    def writer(self) -> TopicWriter:
        return TopicWriter(self.brokers, self.settings.broker_timeout_s)

    @property
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000
