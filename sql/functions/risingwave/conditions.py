"""Choices, and tests for NULL."""

from __future__ import annotations

from collections.abc import Sequence

from dovetail.sql.functions.registry import Build, Row, Table
from dovetail.sql.functions.risingwave.comparisons import comparable
from dovetail.sql.functions.risingwave.values.casts import unified
from dovetail.sql.functions.risingwave.values.kinds import INT, kind_of, typed
from dovetail.sql.functions.typed import Typed


def _of_common_kind(name: str) -> Build:
    def build(given: Sequence[Typed]) -> Typed:
        trees, kind = unified(f"{name}()", given)
        return typed(given[0], f"{name}({{*}})", trees, kind)

    return build


def _nullif(given: Sequence[Typed]) -> Typed:
    one, other = comparable(given)
    return typed(
        given[0], "CASE WHEN {0} = {1} THEN NULL ELSE {2} END", [one.tree, other.tree, given[0].tree], kind_of(given[0])
    )


def _count(template: str) -> Build:
    def build(given: Sequence[Typed]) -> Typed:
        terms = " + ".join(template.replace("{0}", f"{{{index}}}") for index in range(len(given)))
        return typed(given[0], f"CAST({terms} AS INTEGER)", [value.tree for value in given], INT)

    return build


FUNCTIONS: Table = (
    Row("coalesce(a, ..)", "the first that is not NULL", _of_common_kind("coalesce")),
    Row("nullif(a, b)", "NULL where they are equal, else a", _nullif),
    Row("greatest(a, ..)", "the greatest of them, NULLs aside", _of_common_kind("greatest")),
    Row("least(a, ..)", "the least of them, NULLs aside", _of_common_kind("least")),
    Row("num_nulls(a, ..)", "how many are NULL", _count("CAST({0} IS NULL AS INTEGER)")),
    Row("num_nonnulls(a, ..)", "how many are not NULL", _count("CAST({0} IS NOT NULL AS INTEGER)")),
)
