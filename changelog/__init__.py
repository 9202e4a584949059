"""The changelog: rows with a signed count, their algebra, and their form in Kafka records."""

from dovetail.changelog.changes import DELTA, Changes

__all__ = ["DELTA", "Changes"]
