"""The history that a view reads before it is up to date: what its inputs held when somebody began to look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dovetail.broker.topics import PartitionOffsets
from dovetail.joins.dataflow.graph import TopicScan
from dovetail.services.session.context import Context
from dovetail.services.session.input_progress import input_topics, reading
from dovetail.services.session.live.backlog import Backlog
from dovetail.sql.catalog import Desired
from dovetail.sql.engines import Engine
from dovetail.sql.fragments import Fragment
from dovetail.sql.planner import Plan


@dataclass(frozen=True)
class Backfill:
    """starts, ends   topic → partition → where the query begins, and where there was no more; of its inputs, not of the
    topics between its fragments
    """

    context: Context
    plan: Plan
    starts: Mapping[str, PartitionOffsets]
    ends: Mapping[str, PartitionOffsets]

    @staticmethod
    def begun(context: Context, plan: Plan) -> Backfill:
        """Of a view that was created a moment ago."""
        between = {fragment.output.topic for fragment in plan.fragments[:-1]}
        scans = [scan for one in plan.fragments for scan in _scans(one) if scan.topic not in between]
        starts = context.topics.first_offsets(scans)
        return Backfill(context, plan, starts, context.topics.all_ends(starts))

    @property
    def goes_on(self) -> bool:
        """Whether it is to run, as far as its user says. Raises UnknownName where it was dropped."""
        return self.context.catalog.query(self.plan.name).desired is Desired.RUNNING

    def look(self) -> Backlog:
        """How far it is: with what its fragments have written for each other until now. Raises SqlError where one has
        failed.
        """
        found = Backlog()
        for fragment in self.plan.fragments:
            progress = reading(self.context, fragment.name)
            for topic in input_topics(fragment):
                ends = self.ends[topic] if topic in self.ends else self.context.topics.ends(topic)
                reached = {partition: progress.reached(topic, partition) for partition in ends}
                found += Backlog.of_topic(self.starts.get(topic, {}), reached, ends)
        return found


def _scans(fragment: Fragment) -> Sequence[TopicScan]:
    return fragment.dataflow.scans if fragment.engine is Engine.SPARK else (fragment.lookup_flow.scan,)
