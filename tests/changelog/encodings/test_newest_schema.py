"""Rows are written by the newest schema, and refused only by the one that is newest now."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

import pyarrow as pa
import pytest

from dovetail.broker.registry.protobuf_text import compiled
from dovetail.changelog.encode import Forms
from dovetail.changelog.encodings.interface import SchemaDefinition
from dovetail.changelog.encodings.schema_id_framing import wire
from dovetail.changelog.encodings.schema_id_framing.subjects import SCHEMA_ID_FRAMED, SUBJECT
from dovetail.changelog.encodings.schema_parsers import SCHEMA_PARSERS
from dovetail.changelog.errors import SqlError
from dovetail.changelog.schema import RecordFormat

NARROW = pa.schema([("id", pa.int64())])
WIDE = pa.schema([*NARROW, ("price", pa.decimal128(9, 2))])


@dataclass
class Slow:
    """A ``SchemaSource`` that tells of the last of its schemas when it is asked for the present one."""

    known: list[SchemaDefinition]
    current: int = 0
    lookups: list[str] = field(default_factory=list)

    def definition(self, schema_id: int) -> SchemaDefinition | None:
        return self.known[schema_id]

    def newest(self, subject: str) -> int | None:
        return self.current

    def latest(self, subject: str) -> int | None:
        self.lookups.append(subject)
        self.current = len(self.known) - 1
        return self.current


def own(kind: str, columns: pa.Schema) -> SchemaDefinition:
    made = SCHEMA_PARSERS[kind].own(columns, "t")
    return SchemaDefinition(made.kind, made.text, compiled=compiled(made) if kind == "protobuf" else b"")


@pytest.mark.parametrize("kind", SCHEMA_ID_FRAMED)
def test_a_column_that_is_missing_is_looked_for_in_the_present_schema(kind: str) -> None:
    schemas = Slow([own(kind, NARROW), own(kind, WIDE)])
    forms = Forms(RecordFormat(kind, ((SUBJECT, "t-value"),)), schemas=schemas)
    rows = pa.table({"id": [1, None], "price": [Decimal("1.25"), None]}, schema=WIDE)
    for given, schema_id, lookups in ((rows.select(["id"]), 0, 0), (rows, 1, 1), (rows, 1, 1)):
        values = forms.values(given)
        assert wire.schema_ids(pa.array(values, pa.binary())).tolist() == [schema_id, schema_id]
        assert schemas.lookups == ["t-value"] * lookups


@pytest.mark.parametrize("kind", SCHEMA_ID_FRAMED)
def test_what_the_present_schema_refuses_is_refused(kind: str) -> None:
    schemas = Slow([own(kind, NARROW)])
    forms = Forms(RecordFormat(kind, ((SUBJECT, "t-value"),)), schemas=schemas)
    with pytest.raises(SqlError, match="schema 0 has no member other"):
        forms.values(pa.table({"other": [1]}))
    assert schemas.lookups == ["t-value"]
