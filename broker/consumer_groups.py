"""The consumer groups that read a topic and commit how far: whoever reads it beside Dovetail's own queries."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import ConsumerGroupTopicPartitions

from dovetail.broker.clients import Admin
from dovetail.broker.errors import answer
from dovetail.broker.topics import PartitionOffsets

_OWN = "dovetail."
"""Begins the names of the groups of Dovetail's queries."""


def groups_of(client: Admin, topic: str, timeout_s: float) -> Mapping[str, PartitionOffsets]:
    """By group, the offsets of ``topic`` that it has committed; groups that the login may not describe are left out.

    Raises BrokerError.
    """
    listed = answer(client.list_consumer_groups(request_timeout=timeout_s), timeout_s).valid
    names = sorted(group.group_id for group in listed if not group.group_id.startswith(_OWN))
    promised = {
        name: client.list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)], request_timeout=timeout_s)[name]
        for name in names
    }
    found: dict[str, PartitionOffsets] = {}
    for name, future in promised.items():
        places = answer(future, timeout_s).topic_partitions
        offsets = {place.partition: place.offset for place in places if place.topic == topic and place.offset >= 0}
        if offsets:
            found[name] = offsets
    return found
