"""SHOW STATE OF: what a view holds, by node of its plan and part of the node's state."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from dovetail.joins.state.arrangement_stats import ArrangementStats
from dovetail.services.session.context import Context
from dovetail.services.session.live.live_plan import LiveNode, live_plans
from dovetail.services.session.result import Rows
from dovetail.sql.syntax.statements import Show

STATE = pa.schema(
    [
        ("query", pa.string()),
        ("node", pa.string()),
        ("part", pa.string()),
        ("rows", pa.int64()),
        ("bytes", pa.int64()),
        ("keys", pa.string()),
        ("rows of a key", pa.int64()),
        ("heaviest keys", pa.string()),
        ("lookups", pa.string()),
    ]
)


def show_state(context: Context, statement: Show) -> Rows:
    """A row for each part, in the order of the plan."""
    lines = [
        {"query": query.name, "node": node.name, **part}
        for query, plan in live_plans(context, statement.of)
        for node in _from_the_top(plan)
        for part in _parts(node)
    ]
    return Rows(pa.Table.from_pylist(lines, schema=STATE))


def _from_the_top(node: LiveNode) -> Iterator[LiveNode]:
    yield node
    for below in node.inputs:
        yield from _from_the_top(below)


def _parts(node: LiveNode) -> Iterator[dict[str, object]]:
    yield from (_of_state(part, holding) for part, holding in sorted(node.held.items()))
    if node.memo is not None:
        rows, size = node.memo
        yield {"part": "memo", "rows": rows, "bytes": size}
    if node.cached is not None:
        cached = node.cached
        yield {"part": "cache", "rows": cached.rows, "bytes": cached.bytes, "lookups": cached.text}


def _of_state(part: str, held: ArrangementStats) -> dict[str, object]:
    return {
        "part": part,
        "rows": held.rows,
        "bytes": held.bytes,
        "keys": keys_text(held),
        "rows of a key": held.fan_out,
        "heaviest keys": ", ".join(f"{key.key}: {key.rows:,}" for key in held.top),
    }


def keys_text(held: ArrangementStats) -> str:
    """``120``, or ``120 to 135`` where it is not known better."""
    least, most = held.keys
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"
