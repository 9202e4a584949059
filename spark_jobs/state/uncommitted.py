"""What a batch that never committed has left in Spark's checkpoint.

A batch that is run again writes its versions of the state again. Spark takes for granted that they equal those of the
attempt before, and its file manager keeps the file that is there: the process would go on with one version, and the
next one with another. Ours do not equal: runs merge in another order where the local copy was lost. So the files of an
attempt that never committed are removed before the batch is run again.
"""

from __future__ import annotations

import re

from dovetail.runtime.storage.storage import Storage
from dovetail.spark_jobs.state.checkpoint import logged_batches

_VERSION = re.compile(r"\.*(\d+)\.(changelog|zip)\b.*")


def forget_uncommitted(checkpoint: Storage) -> None:
    """Remove the state of batches behind the last committed one. Nobody may be writing to ``checkpoint`` (Spark's)."""
    committed = max(logged_batches(checkpoint, "commits"), default=-1)
    for path in checkpoint.files("state"):
        name = path.rpartition("/")[2]
        version = _VERSION.fullmatch(name)
        if version is not None and (int(version.group(1)) > committed + 1 or ".tmp" in name):
            checkpoint.remove(path)
