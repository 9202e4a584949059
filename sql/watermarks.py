"""What the settings of a query say of watermarks and of late rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dovetail.changelog.errors import SqlError
from dovetail.joins.dataflow.ports import Watermark
from dovetail.sql.query_settings import QuerySettings


def as_set(stated: Watermark | None, settings: QuerySettings) -> Watermark | None:
    """The watermark that a table's WATERMARK clause states, with ``idle_timeout`` and ``max_future``."""
    if stated is None:
        return None
    idle_ms, future_ms = (settings.duration_ms(name) for name in ("idle_timeout", "max_future"))
    return replace(stated, idle_ms=idle_ms, max_future_ms=future_ms)


def check_late_topic(settings: QuerySettings, topics: Iterable[str]) -> None:
    """Raises SqlError where late rows would be written to one of ``topics``, which the query reads or writes."""
    name = settings.text("late_topic")
    if name in set(topics):
        raise SqlError(
            f"late_topic = '{name}' is a topic that the query reads or writes",
            where="SETTINGS",
            fix="give a topic of its own",
        )
