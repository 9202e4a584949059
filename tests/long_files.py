"""The files of tests that take longest, so that they begin first."""

from __future__ import annotations

from pathlib import Path

from tests.paths import ROOT

# None of a folder whose files share a stack: its first one would start the stack, and the others another.
LONGEST_FIRST = (
    "tests/conformance/test_services.py",
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
    return _RANK.get(path, len(LONGEST_FIRST))
