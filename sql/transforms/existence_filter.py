"""Rows that are asked whether they match something: SEMI, ANTI and MARK of a step that keeps no state."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.joins.dataflow.ports import JoinKind
from dovetail.sql.expressions.trailing_columns import with_columns


def existence_filter(rows: pa.Table, matched: npt.NDArray[np.bool_], kind: JoinKind, mark: str) -> pa.Table:
    """SEMI gives the rows that are ``matched``, ANTI the other ones, MARK all with the column ``mark``."""
    if kind is JoinKind.MARK:
        return with_columns(rows, [(pa.field(mark, pa.bool_()), pa.array(matched))])
    wanted = matched if kind is JoinKind.SEMI else ~matched
    return rows if wanted.all() else rows.filter(pa.array(wanted))
