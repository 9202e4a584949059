"""``join_max_buffered_bytes``: a query that would buffer more is aborted, with nothing half-written."""

from __future__ import annotations

from dovetail.changelog.errors import StateLimitExceeded
from dovetail.joins.dataflow.specification import OperatorSpec
from dovetail.joins.state.store import RunStore


def check_buffered(operator: OperatorSpec, store: RunStore, buckets: int) -> None:
    """Raise StateLimitExceeded if a bucket holds more than its share: the limit, divided equally by the buckets."""
    limit = operator.max_buffered_bytes
    if limit is not None and store.buffered_bytes > limit // buckets:
        raise StateLimitExceeded(
            f"the rows buffered by the join passed join_max_buffered_bytes = {limit}: one of {buckets} buckets "
            f"holds {store.buffered_bytes} bytes",
            fix="raise join_max_buffered_bytes, give the join a bound, or select fewer columns",
        )
