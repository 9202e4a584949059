"""The consumer group in a transaction: who commits, as bytes that the producer of another library takes.

Faust's member of the group is aiokafka's, the transactional producer is confluent-kafka's. What the producer takes is
the serialised metadata of its own library's consumer, whose form is internal to it: ``check`` compares at every start.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from dovetail.broker import clients
from dovetail.broker.address import BrokerAddress
from dovetail.changelog.errors import InternalError


@dataclass(frozen=True)
class GroupMember:
    """A member of a consumer group, at one generation: what it commits later than that is refused."""

    group: str
    generation: int
    name: str

    @property
    def metadata(self) -> bytes:
        head = b"CGMDv2:" + struct.pack("=i", self.generation)
        # The last byte says that there is no static name.
        return head + self.group.encode() + b"\0" + self.name.encode() + b"\0\x01"


NOBODY = -1
"""The generation of a consumer that has joined no group."""


def check(brokers: BrokerAddress) -> None:
    """Raises InternalError if the library's own form is another."""
    group = "dovetail-check"
    consumer = clients.consumer(brokers, group, {})
    expected = consumer.consumer_group_metadata()
    consumer.close()
    if GroupMember(group, NOBODY, "").metadata != expected:
        raise InternalError(
            f"confluent-kafka writes group metadata in a form that is not known: {expected!r}",
            where="the lookup worker, at its start",
            fix="use the version of confluent-kafka in requirements.lock",
        )
