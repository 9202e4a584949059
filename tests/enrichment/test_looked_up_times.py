"""A looked-up time that no row can hold."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from dovetail.changelog.errors import RecordRejected
from dovetail.enrichment.lookup_join.looked_up_columns import LookedUpColumns
from dovetail.joins.dataflow.ports import JoinKind
from tests.enrichment.flows import stage


@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("us")])
def test_a_time_that_no_row_can_hold_rejects_its_record(kind: pa.DataType) -> None:
    join = stage(0, ("k",), JoinKind.INNER).join
    access = replace(join.access, types=tuple(kind for _ in join.access.types))
    columns = LookedUpColumns(replace(join, access=access, schema=pa.schema([(one.name, kind) for one in join.schema])))
    assert columns.build([tuple(1 for _ in access.types)])
    with pytest.raises(RecordRejected, match="a time is outside of"):
        columns.build([tuple(2**31 - 1 if kind == pa.date32() else 2**63 - 1 for _ in access.types)])
