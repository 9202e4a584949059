"""A click-through pipeline: each ad impression, with its click as soon as there is one."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import polars as pl
import pyarrow as pa

from dovetail.broker.reader import TopicReader
from dovetail.changelog.encode import records_of
from dovetail.changelog.schema import WIRE_DELTA
from dovetail.services.cli.demo.events import DemoStep, steps
from dovetail.services.cli.show import Screen
from dovetail.services.session import Rows, Session
from dovetail.services.session.input_progress import CatchUp, InputProgress, reading
from dovetail.services.session.select import TopicRows
from dovetail.sql.planner import Plan, plan_query, stream_of
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateView

STREAMS = (
    "CREATE STREAM impressions (id int64, campaign string, price float64, shown_at datetime64(3))",
    "CREATE STREAM clicks (impression int64, clicked_at datetime64(3))",
)
VIEW = """\
CREATE MATERIALIZED VIEW clickthrough AS
SELECT i.id AS impression, i.campaign AS campaign, i.price AS price, i.shown_at AS shown_at, c.clicked_at AS clicked_at
FROM impressions AS i LEFT JOIN clicks AS c ON i.id = c.impression"""
BEST = """\
SELECT campaign, count() AS impressions, count(clicked_at) AS clicks,
       round(100.0 * count(clicked_at) / count(), 2) AS percent, round(sum(price), 2) AS cost
FROM table(clickthrough) GROUP BY campaign ORDER BY percent DESC LIMIT 5"""
_POLL_S = 0.1


@dataclass(frozen=True)
class DemoRun:
    """What went through the query: all of it, and what came after the first step, which warms the engine up."""

    reading: InputProgress
    warm_rows: int
    warm_s: float

    @property
    def line(self) -> str:
        return (
            f"{self.reading.rows_in:,} rows in, {self.reading.rows_out:,} rows out; once warm, "
            f"{self.warm_rows:,} rows in took {self.warm_s:.1f} s from the first event to the last result: "
            f"{self.warm_rows / self.warm_s:,.0f} per second"
        )


def run(session: Session, screen: Screen, events: int) -> bool:
    """Whether the view holds what a batch over all events gives."""
    screen.title("Ad impressions, joined with their clicks")
    for statement in (*STREAMS, VIEW):
        screen.note(f"> {statement}")
        session.run(statement)
    screen.note(_pumped(session, screen, events).line, style="bold")
    _show_changelog(session, screen)
    screen.note(f"> {BEST}")
    answer = session.execute(parse_one(BEST))
    assert isinstance(answer, Rows)
    screen.rows(answer.table)
    verified = session.verify("clickthrough")
    if not verified.holds:
        screen.rows(verified.difference.slice(0, 10))
    return screen.verdict(verified.holds, f"verified: {verified.found:,} rows, as a batch over all events gives them")


def _pumped(session: Session, screen: Screen, events: int) -> DemoRun:
    """Produce all events while the query runs, and wait until it has answered them."""
    plan = plan_query("clickthrough", _definition(), session.context.catalog)
    with screen.progress("events", events) as shown:
        first, *rest = steps(events)
        _produce(session, first)
        before = answered(session, plan, shown)
        started = time.monotonic()
        for step in rest:
            _produce(session, step)
            shown(reading(session.context, plan.name).rows_in)
        after = answered(session, plan, shown)
    return DemoRun(after, after.rows_in - before.rows_in, time.monotonic() - started)


def _definition() -> CreateView:
    definition = parse_one(VIEW)
    assert isinstance(definition, CreateView)
    return definition


def _produce(session: Session, step: DemoStep) -> None:
    for name, rows in (("impressions", step.impressions), ("clicks", step.clicks)):
        stream = stream_of(session.context.catalog, name)
        session.context.writer.write(stream.topic, records_of(stream.schema, rows))


def answered(session: Session, plan: Plan, shown: Callable[[int], None]) -> InputProgress:
    """Wait until all that was produced is answered."""
    catch_up = CatchUp(session.context, plan)
    while not catch_up.is_complete():
        shown(reading(session.context, plan.name).rows_in)
        time.sleep(_POLL_S)
    now = reading(session.context, plan.name)
    shown(now.rows_in)
    return now


def _show_changelog(session: Session, screen: Screen) -> None:
    """The life of the first impressions that were shown before they were clicked on."""
    rows = _changelog(session)
    frame = pl.DataFrame(pl.from_arrow(rows))
    taken_back = frame.filter(pl.col(WIRE_DELTA) < 0)["impression"].head(3).to_list()
    lives = frame.filter(pl.col("impression").is_in(taken_back)).sort("impression", maintain_order=True)
    screen.note("some of the changelog: shown at once without a click, taken back and replaced when it comes")
    screen.changelog(rows.schema).add(lives.to_arrow().cast(rows.schema))


def _changelog(session: Session) -> pa.Table:
    stream = stream_of(session.context.catalog, "clickthrough")
    view = TopicRows(stream, session.context.brokers)
    reader = TopicReader(session.context.brokers, stream.topic)
    batches = reader.until(session.context.topics.ends(stream.topic))
    return pa.concat_tables([view.schema.empty_table(), *(view.decoded(records) for records in batches)])
