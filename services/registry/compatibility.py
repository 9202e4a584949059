"""Whether a schema may follow others: what was written by one is read by the other.

Of Avro the rules of its specification, by Apache's own library; of Protobuf those of ``protobuf_changes``, of JSON
Schema those of ``json_schemas.coverage``.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import avro.compatibility
import avro.errors

from dovetail.broker.registry.registered import SchemaNonsense, SchemaType, WholeSchema
from dovetail.services.registry.avro_schema import parsed
from dovetail.services.registry.json_schemas.coverage import uncovered
from dovetail.services.registry.protobuf_changes import changes


class Level(StrEnum):
    """Which way, and whether against the last version or all of them."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def transitive(self) -> bool:
        return self.value.endswith("_TRANSITIVE")

    @property
    def new_reads_old(self) -> bool:
        return self.value.startswith(("BACKWARD", "FULL"))

    @property
    def old_reads_new(self) -> bool:
        return self.value.startswith(("FORWARD", "FULL"))


def objections(new: WholeSchema, former: Sequence[WholeSchema], level: Level) -> list[str]:
    """Why ``new`` may not follow ``former``, the schemas of its subject in order; none if it may."""
    compared = former if level.transitive else former[-1:]
    return [reason for old in compared for reason in _objections(new, old, level)]


def _objections(new: WholeSchema, old: WholeSchema, level: Level) -> list[str]:
    if level is Level.NONE or new == old:
        return []
    if new.type is not old.type:
        return [f"the schema is of {new.type} and the one before of {old.type}"]
    if new.type is SchemaType.PROTOBUF:
        return changes(new, old)
    unreadable = _unreadable if new.type is SchemaType.AVRO else _unreadable_json
    found = []
    if level.new_reads_old:
        found += [f"the new schema cannot read the old: {reason}" for reason in unreadable(new, old)]
    if level.old_reads_new:
        found += [f"the old schema cannot read the new: {reason}" for reason in unreadable(old, new)]
    return found


def _unreadable(reader: WholeSchema, writer: WholeSchema) -> list[str]:
    checker = avro.compatibility.ReaderWriterCompatibilityChecker()
    try:
        result = checker.get_compatibility(parsed(reader), parsed(writer))
    except (avro.errors.AvroException, SchemaNonsense, RecursionError) as fault:
        return [f"it cannot be compared: {fault}"]
    if result.compatibility is avro.compatibility.SchemaCompatibilityType.compatible:
        return []
    return sorted(str(message) for message in result.messages) or ["they do not fit"]


def _unreadable_json(reader: WholeSchema, writer: WholeSchema) -> list[str]:
    try:
        return uncovered(reader, writer)
    except SchemaNonsense as nonsense:
        return [f"it cannot be compared: {nonsense}"]
