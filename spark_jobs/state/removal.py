"""Removing what a query has left: its checkpoint, the local copies of its state, its marks at the broker."""

from __future__ import annotations

from pathlib import Path

from dovetail.broker import clients, topics
from dovetail.broker.address import BrokerAddress
from dovetail.broker.names import MARKS_TOPIC
from dovetail.broker.transactional_writer import mark_dropped
from dovetail.runtime.storage.storage import Storage
from dovetail.spark_jobs.state import own_folder
from dovetail.spark_jobs.state.checkpoint import Checkpoint


def discard(checkpoint: Storage, brokers: BrokerAddress, local_copy_dir: Path | None, *, outlived: bool) -> None:
    """Remove a checkpoint that counts no more.

    outlived   there may be backups of it, or tasks that are late: they are to find that it was dropped
    """
    identity = Checkpoint(checkpoint).identity
    if identity and local_copy_dir is not None:
        own_folder.removed(local_copy_dir, identity)
    if identity and outlived:
        # Its other marks stay: were they forgotten first, whoever goes on meanwhile would find none.
        mark_dropped(brokers, identity, MARKS_TOPIC)
    elif identity:
        topics.forget_group(clients.admin(brokers), identity)
    checkpoint.clear()
