"""An operator whose rows leave by several edges: it gives what as many operators over the same input give."""

from __future__ import annotations

import pyarrow as pa
import pytest

from dovetail.changelog.changes import DELTA
from dovetail.joins.dataflow.graph import Dataflow
from dovetail.joins.dataflow.state_memory import StateMemory
from dovetail.joins.host.in_memory import LocalQuery
from dovetail.joins.host.one_bucket import OneBucket
from dovetail.joins.state.durable_copy import DurableCopy
from tests.joins.host.test_one_bucket import BATCHES, Batch, inputs, shown
from tests.spark.flows import in_portions, orders_users_twice

ONCE, TWICE = (orders_users_twice("orders", "users", shared) for shared in (True, False))


def twice(batch: Batch) -> Batch:
    """With the users for the second scan too."""
    return {**batch, 2: batch[1]} if 1 in batch else batch


@pytest.mark.parametrize("buckets", [1, 3])
@pytest.mark.parametrize("flow", [ONCE, in_portions(ONCE, StateMemory(2_000))], ids=["whole", "in portions"])
def test_it_gives_what_several_give_over_restarts_and_other_buckets(flow: Dataflow, buckets: int) -> None:
    once, several = LocalQuery(flow, buckets), LocalQuery(TWICE, buckets)
    for number, batch in enumerate(BATCHES):
        assert shown(once.feed(batch)) == shown(several.feed(twice(batch))) != []
        for query in (once, several):
            if number == 1:
                query.rescale(2)
            else:
                query.restart()


def test_so_it_does_in_one_bucket() -> None:
    apart, kept = LocalQuery(TWICE, buckets=1), DurableCopy()
    for batch in BATCHES:
        store = kept.restored()
        output = OneBucket(ONCE, store.part("7."), {}).on_batch(inputs(ONCE, batch))
        kept.save(store)
        together = pa.concat_tables(output.changes).sort_by(DELTA) if output.changes else None
        assert shown(together) == shown(apart.feed(twice(batch)))


def test_its_state_is_there_once_and_what_leaves_is_added_up() -> None:
    once, several = LocalQuery(ONCE), LocalQuery(TWICE)
    once.feed(BATCHES[0])
    several.feed(twice(BATCHES[0]))
    rows = [sum(store.rows for store in query.stores) for query in (once, several)]
    assert rows[1] - rows[0] == 8
    assert (once.activity.nodes[0].changes, once.activity.nodes[0].rows_out) == (8, 16)


def test_a_watermark_goes_on_by_every_edge() -> None:
    assert ONCE.beyond(ONCE.scans[1].edge) == (1, 2, 4)
    assert ONCE.listening(1) == {1}
    assert {edge: ONCE.source(edge).alias for edge in (0, 1, 2, 4)} == {0: "l", 1: "u", 2: "u", 4: "u"}
    assert ONCE.scans_behind(5) == {0, 1}
