"""What the lookup workers keep for a query, as they have last reported it, all that live together."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from dovetail.changelog.wording import counted


@dataclass(frozen=True)
class Cached:
    """Of a dictionary. ``rows`` and ``bytes`` are in the memory of processes: a row that two have counts twice.

    asked       keys that were looked up since the processes began
    hot, cold   of these, answered by the memory of the process, and by the tier behind it
    """

    rows: int
    bytes: int
    asked: int
    hot: int
    cold: int

    def beside(self, other: Cached) -> Cached:
        return Cached(
            self.rows + other.rows,
            self.bytes + other.bytes,
            self.asked + other.asked,
            self.hot + other.hot,
            self.cold + other.cold,
        )

    @property
    def text(self) -> str:
        """``940 keys: 90 % hot, 8 % cold, 2 % source``"""
        if not self.asked:
            return "0 keys"
        shares = {"hot": self.hot, "cold": self.cold, "source": self.asked - self.hot - self.cold}
        by_tier = ", ".join(f"{100 * count / self.asked:.0f} % {tier}" for tier, count in shares.items())
        return f"{counted(self.asked, 'key')}: {by_tier}"


@dataclass(frozen=True)
class KeptForLookups:
    """``tables``: by name; ``memo``: rows and bytes of what was emitted for updating left rows, None without one."""

    tables: Mapping[str, Cached] = field(default_factory=dict)
    memo: tuple[int, int] | None = None

    @staticmethod
    def of(progress: Mapping[str, Any], live: Collection[str]) -> KeptForLookups:
        """``progress`` of the query; what workers that do not live any more have told counts no more."""
        tables: dict[str, Cached] = {}
        memos = []
        for worker, reported in progress.get("held_by_worker", {}).items():
            if worker in live:
                for name, figures in reported.get("tables", {}).items():
                    own = Cached(*figures)
                    tables[name] = own.beside(tables[name]) if name in tables else own
                memos += [reported["memo"]] if "memo" in reported else []
        total = (sum(rows for rows, _ in memos), sum(size for _, size in memos))
        return KeptForLookups(tables, total if memos else None)
