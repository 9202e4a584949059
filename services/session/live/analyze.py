"""EXPLAIN ANALYZE: the plan of a running view, each node with what it has done."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from itertools import count
from typing import Any

from dovetail.changelog.errors import InternalError
from dovetail.changelog.wording import counted
from dovetail.joins.state.arrangement_stats import ArrangementStats
from dovetail.services.session.context import Context
from dovetail.services.session.live.live_plan import LiveNode, live_plans
from dovetail.services.session.result import Text
from dovetail.sql.plan.explain import branches
from dovetail.sql.syntax.statements import ExplainAnalyze

_KILO = 1_000


def explain_analyze(context: Context, statement: ExplainAnalyze) -> Text:
    plans = live_plans(context, statement.name)
    match statement.form:
        case "text":
            return Text("\n\n".join("\n".join(_lines(plan)) for _, plan in plans))
        case "json":
            return Text(json.dumps({query.name: _members(plan) for query, plan in plans}, indent=2))
        case "mermaid":
            return Text("\n".join(["flowchart BT", *_chart([plan for _, plan in plans])]))
        case _:
            raise InternalError(f"EXPLAIN ANALYZE has no form {statement.form}")


# -- text


def _lines(node: LiveNode) -> list[str]:
    shown = figures(node)
    bar = "│  " if node.inputs else "   "
    own = [f"{bar}{shown}"] if shown else []
    return [node.text, *own, *branches([_lines(below) for below in node.inputs])]


def figures(node: LiveNode) -> str:
    """``in 3 + 2  out 4  fan-out 0.80  state 5 rows, 400 B (left 3, right 2)  time 4 ms  batches 1``

    ``made 6`` before ``out`` where some of what the node has made did not leave: it cancelled out, or was dropped by a
    step above.
    """
    work, parts = node.work, []
    if work is not None:
        parts.append(f"in {' + '.join(f'{rows:,}' for rows in work.rows_in)}")
        if work.changes != node.rows_out:
            parts.append(f"made {work.changes:,}")
    if node.rows_out is not None:
        parts.append(f"out {node.rows_out:,}")
    if work is not None and node.held and work.fan_out is not None:
        parts.append(f"fan-out {work.fan_out:.2f}")
    if node.held:
        parts.append(f"state {_state_text(node)}")
    if node.memo is not None:
        parts.append(f"memo {node.memo[0]:,} rows, {size_text(node.memo[1])}")
    if node.cached is not None:
        parts.append(
            f"cache {counted(node.cached.rows, 'row')}, {size_text(node.cached.bytes)}  lookups {node.cached.text}"
        )
    if node.watermark:
        parts.append(f"watermark {node.watermark}")
    if work is not None:
        parts += [f"time {time_text(work.busy_ns)}", f"batches {work.batches:,}"]
    return "  ".join(parts)


def _state_text(node: LiveNode) -> str:
    rows, size = _sizes(node)
    parts = ", ".join(f"{part} {held.rows:,}" for part, held in sorted(node.held.items()))
    return f"{counted(rows, 'row')}, {size_text(size)} ({parts})"


def _sizes(node: LiveNode) -> tuple[int, int]:
    return sum(held.rows for held in node.held.values()), sum(held.bytes for held in node.held.values())


def size_text(size: float) -> str:
    """``812 B``, ``1.2 kB``, ``3.4 MB``."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < _KILO:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= _KILO
    return f"{size:.1f} TB"


def time_text(busy_ns: int) -> str:
    """``0.4 ms``, ``12 ms``, ``3.4 s``."""
    ms = busy_ns / 1e6
    if ms < 10:
        return f"{ms:.1f} ms"
    return f"{ms:.0f} ms" if ms < 10 * _KILO else f"{ms / _KILO:.1f} s"


# -- for programs


def _members(node: LiveNode) -> dict[str, Any]:
    work = node.work
    members: dict[str, Any] = {"node": node.text, "rows_out": node.rows_out}
    if work is not None:
        members |= {
            "rows_in": list(work.rows_in),
            "changes": work.changes,
            "fan_out": work.fan_out,
            "busy_ms": work.busy_ns / 1e6,
            "batches": work.batches,
        }
    if node.held:
        members["state"] = {part: _held(held) for part, held in sorted(node.held.items())}
    if node.memo is not None:
        members["memo"] = {"rows": node.memo[0], "bytes": node.memo[1]}
    if node.watermark:
        members["watermark"] = node.watermark
    if node.cached is not None:
        members["cache"] = asdict(node.cached)
    return {**members, "inputs": [_members(below) for below in node.inputs]}


def _held(held: ArrangementStats) -> dict[str, Any]:
    return {
        "rows": held.rows,
        "bytes": held.bytes,
        "least_keys": held.keys[0],
        "most_keys": held.keys[1],
        "rows_of_a_key": held.fan_out,
        "heaviest_keys": [{"key": key.key, "rows": key.rows} for key in held.top],
    }


# -- as a picture


def _chart(plans: list[LiveNode]) -> Iterator[str]:
    """Boxes, and arrows in the direction of the rows, with their number."""
    numbers = count()

    def drawn(node: LiveNode, above: int | None) -> Iterator[str]:
        number = next(numbers)
        yield f'  n{number}["{_escaped(node.name)}<br>{_escaped(figures(node))}"]'
        if above is not None:
            yield f"  n{number} -->{_edge(node)} n{above}"
        for below in node.inputs:
            yield from drawn(below, number)

    for plan in plans:
        yield from drawn(plan, None)


def _edge(node: LiveNode) -> str:
    return "" if node.rows_out is None else f"|{node.rows_out:,}|"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
