"""Lists in parts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def list_parts(values: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Offsets from 0, NULL where a list is, and what the lists hold."""
    lengths = pc.list_value_length(values)
    ends = np.concatenate([[0], np.cumsum(lengths.fill_null(0).to_numpy(zero_copy_only=False))]).astype(np.int32)
    nulls = np.append(values.is_null().to_numpy(zero_copy_only=False), False)
    return pa.array(ends, pa.int32(), mask=nulls if values.null_count else None), values.flatten()
