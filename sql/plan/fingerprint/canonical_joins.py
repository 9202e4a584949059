"""The canonical form of the kinds of joins. The words are those of checkpoints, whatever the classes are called."""

from __future__ import annotations

from typing import assert_never

from dovetail.changelog.errors import InternalError
from dovetail.sql.plan.fingerprint.canonical_values import Form, members
from dovetail.sql.plan.joins import (
    Apply,
    Asof,
    AsofOnce,
    AsWritten,
    Bidirectional,
    DynamicFilter,
    Enrichment,
    JoinMethod,
    Latest,
    Range,
    Temporal,
)
from dovetail.sql.plan.joins.alignment import Alignment
from dovetail.sql.plan.joins.dynamic_filter import MovingBound
from dovetail.sql.plan.joins.inequality import TimeInequality
from dovetail.sql.plan.joins.range import Band


def canonical_method(how: JoinMethod) -> Form:
    match how:
        case Bidirectional():
            return members(kind="bidirectional")
        case Range():
            return members(kind="range", band=_band(how.band), append=how.append, closed=how.closed, clock=how.clock)
        case Enrichment():
            small = {"everywhere": True} if how.everywhere else {}
            return members(kind="enrichment", alignment=_alignment(how.alignment), **small)
        case Latest():
            return members(kind="latest", alignment=_alignment(how.alignment))
        case Asof() | AsofOnce():
            return _asof(how)
        case Temporal():
            return members(kind="temporal", left=how.left, right=how.right, deleted=how.deleted)
        case DynamicFilter():
            return members(kind="dynamic_filter", bound=None if how.bound is None else _bound(how.bound))
        case AsWritten() | Apply():
            raise InternalError("a join that was not chosen yet has no state")
        case _:
            assert_never(how)


def _asof(how: Asof | AsofOnce) -> Form:
    match how:
        case Asof():
            return members(
                kind="asof",
                inequality=_inequality(how.inequality),
                tie_breaks=list(how.tie_breaks),
                tolerance=how.tolerance,
            )
        case AsofOnce():
            return members(
                kind="asof_once",
                inequality=_inequality(how.inequality),
                keep_versions=how.keep_versions,
                alignment=_alignment(how.alignment),
            )
        case _:
            assert_never(how)


def _band(of: Band) -> Form:
    return members(
        left=of.left,
        right=of.right,
        lower=of.lower,
        upper=of.upper,
        left_shift=of.left_shift,
        right_shift=of.right_shift,
    )


def _inequality(of: TimeInequality) -> Form:
    return members(left=of.left, comparison=of.comparison, right=of.right)


def _bound(of: MovingBound) -> Form:
    return members(left=of.left, comparison=of.comparison, right=of.right)


def _alignment(of: Alignment | None) -> Form | None:
    return None if of is None else members(left_time=of.left_time, lag_ms=of.lag_ms)
