"""Plans and statements that a random test asks for with each of its examples, made once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any, TypeVar

from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import Statement

_KEPT = 300
_plans: OrderedDict[Hashable, Any] = OrderedDict()
_Planned = TypeVar("_Planned")


def planned_once(key: Hashable, plan: Callable[[], _Planned]) -> _Planned:
    """``plan()``; what it gave before where that was under the same ``key``: a plan is a function of the statements
    that made its catalog, of the query, and of its settings.
    """
    if key not in _plans:
        _plans[key] = plan()
        while len(_plans) > _KEPT:
            _plans.popitem(last=False)
    found: _Planned = _plans[key]
    return found


@lru_cache(maxsize=_KEPT)
def parsed_once(text: str) -> Statement:
    """Whoever binds the tree of a statement copies it first."""
    return parse_one(text)
