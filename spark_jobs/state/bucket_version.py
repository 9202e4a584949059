"""The version of a bucket's state: what its portions are, and which copy of each is as of the last commit.

A bucket of one portion has the scalars of its store as JSON; one of several has theirs:

    {"expired.0.left": 17, "next_id": 4}
    {"portions": [{"number": 0, "depth": 1, "residue": 0, "one_key": 0, "version": [12, "6f.."], "scalars": {..}}, ..]}
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dovetail.joins.state.portion import WHOLE, Portion
from dovetail.spark_jobs.state.local_copy import StateVersion

_PORTIONS = "portions"


@dataclass(frozen=True)
class PortionVersion:
    """A portion as it was put back last."""

    portion: Portion
    version: StateVersion
    scalars: Mapping[str, int]


@dataclass(frozen=True)
class BucketVersion:
    """Of all portions of a bucket."""

    portions: tuple[PortionVersion, ...]

    @staticmethod
    def read(number: int, token: str, scalars: str) -> BucketVersion:
        """What ``written`` has made."""
        found = json.loads(scalars)
        if _PORTIONS not in found:
            return BucketVersion((PortionVersion(WHOLE, StateVersion(number, token), found),))
        return BucketVersion(tuple(map(_read, found[_PORTIONS])))

    def written(self) -> tuple[int, str, str]:
        """Number and token of the last commit, and a text."""
        last = max((one.version for one in self.portions), key=lambda version: version.number)
        scalars: object = {_PORTIONS: [_written(one) for one in self.portions]}
        if [one.portion for one in self.portions] == [WHOLE]:
            scalars = dict(self.portions[0].scalars)
        return last.number, last.token, json.dumps(scalars)


def scalars_of(texts: Iterable[str]) -> Iterable[Mapping[str, int]]:
    """Of all portions of buckets, from their texts."""
    return (one.scalars for text in texts for one in BucketVersion.read(0, "", text).portions)


def _written(one: PortionVersion) -> dict[str, object]:
    portion, version = one.portion, one.version
    return {
        "number": portion.number,
        "depth": portion.depth,
        "residue": portion.residue,
        "one_key": portion.one_key,
        "version": [version.number, version.token],
        "scalars": dict(one.scalars),
    }


def _read(found: Mapping[str, object]) -> PortionVersion:
    portion = Portion(*(int(str(found[name])) for name in ("number", "depth", "residue", "one_key")))
    version, scalars = found["version"], found["scalars"]
    assert isinstance(version, list)
    assert isinstance(scalars, dict)
    return PortionVersion(portion, StateVersion(*version), scalars)
