"""SHOW DEAD LETTERS: how many there are of each reason, and since when."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from dovetail.changelog.dead_letter import is_dead_letter_topic, topic_of
from dovetail.changelog.errors import UnknownName
from dovetail.changelog.suggest import suggestion
from dovetail.services.session.context import Context
from dovetail.services.session.dead_letters.dead_letter_topic import current_dead_letters, expect_dead_letter_topic
from dovetail.services.session.result import Rows
from dovetail.sql.catalog import What
from dovetail.sql.catalog.like import matches
from dovetail.sql.syntax.statements import Show
from dovetail.sql.system_tables import DEAD_LETTERS

_COUNTED = ("topic", "reason")


def show_dead_letters(context: Context, statement: Show) -> Rows:
    """A row for each topic and reason, the most frequent first; ``replayed`` of them were put back."""
    topics = dead_letter_topics(context, statement.of) if statement.of else _every_topic(context)
    counted = [_counted(topic, current_dead_letters(context, topic)) for topic in topics]
    found = pa.concat_tables([_counted("", DEAD_LETTERS.empty_table()), *counted])
    if statement.like is not None:
        like = [matches(reason or "", statement.like) for reason in found.column("reason").to_pylist()]
        found = found.filter(pa.array(like, pa.bool_()))
    return Rows(found, wide=("reason",))


def dead_letter_topics(context: Context, of: str) -> list[str]:
    """The topics of dead letters of a view, or the one that is named."""
    if is_dead_letter_topic(of):
        expect_dead_letter_topic(context, of, "SHOW DEAD LETTERS")
        return [of]
    own = [topic_of(query.name) for query in context.catalog.queries() if query.view == of]
    if not own:
        known = [relation.name for relation in context.catalog.relations(What.VIEW)]
        raise UnknownName(
            f'there is no view "{of}"',
            where="SHOW DEAD LETTERS FROM",
            fix=suggestion(of, known, "SHOW DEAD LETTERS lists those of all queries"),
        )
    there = context.topics.partitions()
    return [topic for topic in own if topic in there]


def _every_topic(context: Context) -> Sequence[str]:
    return sorted(topic for topic in context.topics.partitions() if is_dead_letter_topic(topic))


def _counted(topic: str, dead_letters: pa.Table) -> pa.Table:
    named = dead_letters.append_column("topic", pa.array([topic] * dead_letters.num_rows, pa.string()))
    aggregates = [("rejected_at", "count"), ("replayed_at", "count"), ("rejected_at", "min"), ("rejected_at", "max")]
    groups = named.group_by(list(_COUNTED)).aggregate(aggregates)
    columns = [
        *(groups.column(name) for name in _COUNTED),
        *(groups.column(f"{name}_{of}") for name, of in aggregates),
    ]
    shown = pa.table(columns, names=["topic", "reason", "letters", "replayed", "first", "last"])
    return shown.sort_by([("letters", "descending"), ("reason", "ascending")])
