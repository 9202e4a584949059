"""What a lane is told at its start, besides its partition."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LaneSettings:
    """commit_interval_s  how long a transaction stays open while there is more to do
    commit_records     or until it holds the answers to so many records; fetches that wait make batches of about so many
    queued_fetches     fetches waiting for the lane, at most
    wait_s             how long a service that is away is waited for
    """

    commit_interval_s: float = 0.05
    commit_records: int = 20_000
    queued_fetches: int = 4
    wait_s: float = 120.0


@dataclass(frozen=True)
class LaneTopics:
    """Where a lane writes; ``memo`` is "" where nothing is remembered."""

    output: str
    dead_letters: str
    memo: str = ""


class LaneClosed(Exception):
    """The lane is to end, in the midst of waiting."""
