"""The two topics of commands."""

from __future__ import annotations

from dovetail.broker.topic_shapes import TopicAdmin, TopicShape

COMMANDS = "dovetail.commands"
RESULTS = "dovetail.command-results"
GROUP = "dovetail.commands"
"""In the broker's logs; it is never joined."""

_DAY_MS = 24 * 3600 * 1000
# One partition: commands are executed in the order in which they were given.
_SHAPE = TopicShape(1, config={"cleanup.policy": "delete", "retention.ms": str(_DAY_MS)})


def make_command_topics(topics: TopicAdmin) -> None:
    """Make those that are not there: whoever comes first, a session or a worker."""
    for topic in (COMMANDS, RESULTS):
        topics.create(topic, _SHAPE)
