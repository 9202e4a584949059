"""A session's context without a broker and without runners: topics end where a test says, queries are how it says."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from dovetail.broker.topic_shapes import TopicAdmin
from dovetail.broker.topics import PartitionOffsets
from dovetail.services.session.context import Context
from dovetail.sql.catalog import Actual, Catalog
from dovetail.sql.catalog.entries import queries_of
from dovetail.sql.planner import plan_query
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateStream, CreateView

Ends = dict[str, dict[int, int]]


class GivenEnds(TopicAdmin):
    """Topics that end where it is said, without a broker; ``hidden``: how much of a topic is in an open transaction."""

    def __init__(self) -> None:
        self.given: Ends = defaultdict(lambda: {0: 0})
        self.hidden: dict[str, int] = {}

    def ends(self, topic: str) -> PartitionOffsets:
        hidden = self.hidden.get(topic, 0)
        return {partition: max(end - hidden, 0) for partition, end in self.given[topic].items()}

    def written_ends(self, topic: str) -> PartitionOffsets:
        return dict(self.given[topic])


@dataclass(frozen=True)
class AtHand(Context):
    """A context whose topics are given."""

    given: GivenEnds = field(default_factory=GivenEnds)

    @property
    def topics(self) -> GivenEnds:
        return self.given


def create(catalog: Catalog, text: str) -> None:
    """A stream, or a view; one that is materialized runs."""
    definition = parse_one(text)
    assert isinstance(definition, CreateStream | CreateView)
    if isinstance(definition, CreateStream) or not definition.materialized:
        catalog.create(definition, now_ms=0)
        return
    plan = plan_query(definition.name, definition, catalog)
    *upstream, last = queries_of(plan, text)
    catalog.create(definition, now_ms=0, uses=plan.uses, query=last, upstream=upstream)
    for query in catalog.fragments(definition.name):
        catalog.report(query.id, now_ms=0, actual=Actual.RUNNING)
        catalog.set_checkpoint(query.id, "somewhere")


def report(catalog: Catalog, name: str, offsets: Ends, starts: Ends | None = None) -> None:
    """What the runner says of a query."""
    begun = {topic: dict.fromkeys(partitions, 0) for topic, partitions in offsets.items()} | (starts or {})
    progress = {
        kind: {topic: {str(partition): offset for partition, offset in of.items()} for topic, of in found.items()}
        for kind, found in (("starts", begun), ("offsets", offsets))
    }
    catalog.report(catalog.query(name).id, now_ms=0, progress=progress)
