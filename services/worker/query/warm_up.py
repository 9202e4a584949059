"""Plans a lookup query and makes an app, for the interpreter that the processes of queries are forked from.

What either loads and computes the first time only takes a third of a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dovetail.broker.address import BrokerAddress
from dovetail.broker.group_member import GroupMember
from dovetail.changelog.errors import InternalError, UnknownName
from dovetail.services.worker.lane.lane import Lane
from dovetail.services.worker.lane.lanes import Lanes
from dovetail.services.worker.query.app import AppSettings, lookup_app
from dovetail.sql.planner import plan_query
from dovetail.sql.relations import Stream
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateDictionary, CreateFunction, CreateStream, CreateView, Index

_RELATIONS = (
    "CREATE STREAM events (id int64, at datetime64(3))",
    "CREATE DICTIONARY names (id int64, name string) PRIMARY KEY id SOURCE(MYSQL(TABLE 'names')) LAYOUT(DIRECT())",
)
_VIEW = "CREATE MATERIALIZED VIEW v AS SELECT e.id, d.name FROM events AS e LEFT JOIN names AS d ON e.id = d.id"


@dataclass(frozen=True)
class _Entry:
    definition: CreateStream | CreateDictionary
    written: Stream | None = None


class _ExampleRelations:
    """A catalog of ``_RELATIONS`` alone."""

    def __init__(self) -> None:
        statements = map(parse_one, _RELATIONS)
        self._entries = {
            statement.name: _Entry(statement)
            for statement in statements
            if isinstance(statement, CreateStream | CreateDictionary)
        }

    def get(self, name: str) -> _Entry:
        if name not in self._entries:
            raise UnknownName(f'there is no "{name}"')
        return self._entries[name]

    def indexes(self, stream: str) -> Sequence[Index]:
        return ()

    def function(self, name: str) -> CreateFunction | None:
        return None


def warm_up() -> None:
    """What a process does before it reads its first record, of an example."""
    view = parse_one(_VIEW)
    assert isinstance(view, CreateView)
    fragment = plan_query(view.name, view, _ExampleRelations()).fragment(view.name)
    topic, lanes = fragment.lookup_flow.scan.topic, Lanes(_no_lane)
    lookup_app("warm-up", BrokerAddress("localhost"), topic, lanes, Path(), AppSettings())


def _no_lane(partition: int, member: GroupMember) -> Lane:
    raise InternalError(f"{member} has got partition {partition} of an example")


warm_up()
