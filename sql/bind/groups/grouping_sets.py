"""ROLLUP, CUBE and GROUPING SETS: several groupings of the same rows in one.

GROUP BY ROLLUP (a, b)                  (a, b), (a), ()
GROUP BY CUBE (a, b)                    (a, b), (a), (b), ()
GROUP BY GROUPING SETS ((a, b), c)      (a, b), (c)
GROUP BY x, ROLLUP (a)                  (x, a), (x)            every set of one part with every set of the next
GROUP BY a, b WITH ROLLUP               as ROLLUP (a, b); WITH CUBE as CUBE (a, b)

Brackets within ROLLUP and CUBE hold several keys that come and go together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations, product

from sqlglot import exp

from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.sql.bind.scope import place_of

MOST = 4096
"""The most sets of one GROUP BY, as many as PostgreSQL takes: each row is counted in every one."""

_SEVERAL = (exp.Rollup, exp.Cube, exp.GroupingSets)
_Set = tuple[int, ...]


@dataclass(frozen=True)
class GroupingSets:
    """``keys`` as they are written, one after the other; of each set the positions of its keys among them."""

    keys: tuple[exp.Expr, ...]
    sets: tuple[_Set, ...]

    @staticmethod
    def of(group: exp.Expr, listed: Sequence[exp.Expr]) -> GroupingSets:
        """Those of a GROUP BY of the parts ``listed``; a plain list of keys is one set. Raises SqlError."""
        _refuse_totals(group, listed)
        reader = _Reader(place_of(group, "GROUP BY"))
        clauses = [clause for name in ("rollup", "cube") for clause in group.args.get(name) or ()]
        if len(clauses) > 1:
            raise SqlError("WITH ROLLUP and WITH CUBE do not go together", where=reader.place, fix="WITH CUBE")
        if clauses:
            listed = [type(clauses[0])(expressions=list(listed))]
        several = any(isinstance(part, _SEVERAL) or _is_empty(part) for part in listed)
        # Without sets, brackets with several values are one key: a tuple.
        sets = reader.all_with_all([reader.part(part) if several else [reader.key(part)] for part in listed])
        return GroupingSets(tuple(reader.keys), tuple(sets))


@dataclass
class _Reader:
    place: str
    keys: list[exp.Expr] = field(default_factory=list)

    def part(self, part: exp.Expr) -> list[_Set]:
        """The sets of one part of GROUP BY, or of GROUPING SETS."""
        match part:
            case exp.Rollup():
                units = [self.unit(one) for one in part.expressions]
                return [_together(units[:length]) for length in range(len(units), -1, -1)]
            case exp.Cube():
                units = [self.unit(one) for one in part.expressions]
                self._check(2 ** len(units))
                lengths = range(len(units), -1, -1)
                return [_together(some) for length in lengths for some in combinations(units, length)]
            case exp.GroupingSets():
                return [one for inner in part.expressions for one in self.part(inner)]
            case _:
                return [self.unit(part)]

    def unit(self, part: exp.Expr) -> _Set:
        """A key, or several in brackets."""
        if isinstance(part, _SEVERAL):
            raise SqlError(
                "ROLLUP and CUBE are of keys, not of sets of them",
                where=self.place,
                fix="put them beside each other, or into GROUPING SETS (ROLLUP (a, b), CUBE (c))",
            )
        if isinstance(part, exp.Tuple):
            return _together([self.key(one) for one in part.expressions])
        return self.key(part)

    def key(self, part: exp.Expr) -> _Set:
        self.keys.append(part.unnest())
        return (len(self.keys) - 1,)

    def all_with_all(self, parts: Sequence[Sequence[_Set]]) -> list[_Set]:
        count = 1
        for sets in parts:
            count *= len(sets)
            self._check(count)
        return [_together(chosen) for chosen in product(*parts)]

    def _check(self, count: int) -> None:
        if count > MOST:
            raise Unsupported(
                f"GROUP BY of {count} sets is not supported, of {MOST} it is",
                where=self.place,
                fix="name the sets that are needed: GROUPING SETS ((a, b), (a), ())",
            )


def _together(sets: Sequence[_Set]) -> _Set:
    return tuple(position for one in sets for position in one)


def _is_empty(part: exp.Expr) -> bool:
    return isinstance(part, exp.Tuple) and not part.expressions


def _refuse_totals(group: exp.Expr, listed: Sequence[exp.Expr]) -> None:
    """The row of totals stands beside the result, and a changelog has no place beside its rows."""
    if not group.args.get("totals"):
        return
    keys = ", ".join(part.sql(dialect="clickhouse") for part in listed)
    raise Unsupported(
        "WITH TOTALS is not supported: its row is outside the result, and would be one of it here",
        where=place_of(group, "GROUP BY"),
        fix=f"GROUP BY GROUPING SETS (({keys}), ()): the total is the row of the empty set, known by grouping()",
    )
