"""Loads what the process of a query would load late, for the interpreter that it is forked from.

Nothing is planned here for an example: that starts threads, of which a fork has none.
"""

from __future__ import annotations

from pathlib import Path

# DuckDB looks for it when it is given its first table.
import pandas as pd  # noqa: F401

from dovetail.broker.address import BrokerAddress
from dovetail.broker.group_member import GroupMember
from dovetail.changelog.errors import InternalError
from dovetail.services.worker.lane.lane import Lane
from dovetail.services.worker.lane.lanes import Lanes
from dovetail.services.worker.query.app import AppSettings, lookup_app


def make_an_app() -> None:
    """Faust loads most of itself with its first app, and looks where each of its agents is written."""
    lookup_app("warm-up", BrokerAddress("localhost"), "events", Lanes(_no_lane), Path(), AppSettings())


def _no_lane(partition: int, member: GroupMember) -> Lane:
    raise InternalError(f"{member} has got partition {partition} of an example")


make_an_app()
