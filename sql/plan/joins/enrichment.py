"""One-shot: each left row is joined once, when it comes, with the right rows held then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sql.plan.joins.alignment import AlignedJoinMethod


@dataclass(frozen=True)
class Enrichment(AlignedJoinMethod):
    operator: ClassVar[str] = "Enrichment"
    answers_once: ClassVar[bool] = True
