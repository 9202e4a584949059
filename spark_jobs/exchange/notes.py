"""What the nodes of a query did in a batch, from any stage to the progress of the query.

A **note** is a text of one task. It travels as the name of a count, so it belongs to a committed batch as counts do,
and Spark reports the notes of a batch as a list.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as sf

from dovetail.joins.host.activity import Activity

NOTES = "notes"
_NOTE = "~"
"""The first letter of a note, which no count has, and no reading."""


def noted(author: str, activity: Activity) -> Counter[str]:
    """As a count. No two authors in a batch have one name."""
    return Counter({f"{_NOTE}{author} {json.dumps(activity.document(), separators=(',', ':'))}": 1})


def among(counts: Iterable[str]) -> list[str]:
    """The notes among names of counts."""
    return [name for name in counts if name.startswith(_NOTE)]


def observed_notes() -> Column:
    """NOTES: what Spark is to report of the rows of the last stage."""
    return sf.collect_list(sf.when(sf.col("name").startswith(_NOTE), sf.col("name"))).alias(NOTES)


def activity_of(notes: Iterable[str]) -> Activity:
    """Of a batch, from its NOTES."""
    return Activity.of_batch(Activity.read(json.loads(note[note.index("{") :])) for note in notes)
