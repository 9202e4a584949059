"""What the statements of a session work with."""

# ruff: noqa: PLC0415 - who only looks does not wait for what writes

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

from dovetail.broker.address import BrokerAddress
from dovetail.broker.presence import expect_listening
from dovetail.broker.topic_shapes import TopicAdmin
from dovetail.changelog.errors import Unsupported
from dovetail.changelog.wording import counted
from dovetail.runtime.clock import now_ms
from dovetail.runtime.settings import Settings
from dovetail.runtime.storage.places import storage_at
from dovetail.runtime.storage.spark_conf import read_conf
from dovetail.runtime.storage.storage import Storage
from dovetail.services.live_workers import live_workers
from dovetail.sql.catalog import Catalog

if TYPE_CHECKING:
    from dovetail.broker.reader import TopicContent
    from dovetail.broker.topic_writer import TopicWriter
    from dovetail.services.commands.commander import Commander

Say = Callable[[str], None]
"""Takes a line of progress."""


RunnerFault = Callable[[str], str]
"""Engine → why it runs no query."""


Confirm = Callable[[str], bool]
"""Whether to go on with what is said."""


def no_fault(_engine: str) -> str:
    """Runners that are not ours to watch."""
    return ""


def agreed(_what: str) -> bool:
    """Whatever it is."""
    return True


def unasked(what: str) -> bool:
    """Where there is nobody to ask."""
    in_python = "dovetail.connect(confirm=dovetail.agreed) in Python"
    raise Unsupported(what, fix=f"drop them one by one; or agree: --yes on the command line, {in_python}")


def silent(_line: str) -> None:
    """Progress that nobody reads."""


@dataclass(frozen=True)
class Context:
    """settings      of this process, with the addresses of what runs
    runner_fault  why no query of an engine can run now ('' if its runner is there, or elsewhere)
    say           takes lines of progress of long work
    confirm       asks whether more may go than was named
    """

    settings: Settings
    catalog: Catalog
    brokers: BrokerAddress
    runner_fault: RunnerFault = no_fault
    say: Say = silent
    confirm: Confirm = unasked

    def say_left_out(self, topic: str, rejected: int, records: int) -> None:
        """That of ``records`` records of a topic, ``rejected`` could not be used."""
        if rejected:
            self.say(f"{rejected} of {counted(records, 'record')} of {topic} could not be used: left out")

    @cached_property
    def reached(self) -> BrokerAddress:
        """The brokers, which take connections. Raises ServiceUnavailable soon where they refuse them."""
        expect_listening(self.brokers, self.settings.broker_timeout_s)
        return self.brokers

    @cached_property
    def topics(self) -> TopicAdmin:
        return TopicAdmin(self.reached, self.settings.broker_timeout_s)

    @cached_property
    def writer(self) -> TopicWriter:
        from dovetail.broker.topic_writer import TopicWriter

        return TopicWriter(self.reached, self.settings.broker_timeout_s)

    @cached_property
    def commander(self) -> Commander:
        from dovetail.services.commands.commander import Commander

        return Commander(self.brokers, self.topics, self.writer, self.settings.command_timeout_s)

    @cached_property
    def read(self) -> partial[TopicContent]:
        """``broker.reader.read_topic`` of these brokers: what a topic holds."""
        from dovetail.broker.reader import read_topic

        return partial(read_topic, self.reached)

    def place(self, location: str) -> Storage:
        """Where a checkpoint is, as settings and the catalog name it."""
        return storage_at(location, read_conf(self.settings.spark_conf or ""))

    def live_workers(self) -> list[str]:
        """The lookup workers that were seen a moment ago."""
        return [worker.id for worker in live_workers(self.catalog, self.now_ms)]

    @property
    def now_ms(self) -> int:
        return now_ms()
