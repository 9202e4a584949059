"""What is run by one process, and when: the longest begins first, and who shares a stack stays together."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from tests.paths import ROOT

SHARING_A_STACK = {"tests/services/session": 3, "tests/services/serve/page": 1, "tests/docs": 1}
"""Folders whose files have one stack between them, and how many processes run them. It ends when a process goes on to
another folder, and would start again where a file of its own came later.
"""
LONGEST_FIRST = (
    "tests/services/session",
    "tests/conformance/test_services.py",
    "tests/docs",
    "tests/services/serve/page",
    "tests/spark/runner/test_kill.py",
    "tests/spark/packing/test_packs.py",
    "tests/spark/packing/test_members.py",
    "tests/chaos/test_chaos.py",
    "tests/spark/cluster/test_cluster.py",
    "tests/nexmark/test_kafka.py",
    "tests/spark/rescaling/test_rescale.py",
    "tests/spark/cluster/test_waiting.py",
    "tests/tpch/test_kafka.py",
    "tests/services/worker/test_lookup_faults.py",
    "tests/spark/runner/test_runner.py",
    "tests/spark/runner/test_chained_views.py",
    "tests/spark/packing/test_shared_view.py",
    "tests/spark/runner/test_object_store.py",
)
"""Each takes about a minute or more on two cores, the first more than five."""
_RANK = {ROOT / name: rank for rank, name in enumerate(LONGEST_FIRST)}


def rank(path: Path) -> int:
    """Where a file comes in a run: those that are not long, in the order they have, after those that are."""
    return _RANK.get(path, _RANK.get(path.parent, len(LONGEST_FIRST)))


def scope(nodeid: str) -> str:
    """What is run by one process of several: a part of the folder of a test where its files share a stack, else its
    file.
    """
    file = nodeid.partition("::")[0]
    folder = file.rpartition("/")[0]
    if (parts := SHARING_A_STACK.get(folder)) is None:
        return file
    return f"{folder} {_files(folder).index(ROOT / file) % parts}"


@cache
def _files(folder: str) -> Sequence[Path]:
    return sorted((ROOT / folder).glob("test_*.py"))
