"""Values as columns hold them: those whose columns are texts of one form (``changelog.formats.text_forms``)."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.formats import text_forms
from dovetail.sql.expressions.expression import Expr, of_form
from dovetail.sql.functions import interval_columns
from dovetail.sql.functions.documents import JSON, in_one_form
from dovetail.sql.functions.typed import Typed, filled
from dovetail.sql.syntax.rules import Rules


def kept(value: Typed, forms: Mapping[str, str], rules: Rules) -> Typed:
    """A value that is compared, grouped by or written. ``forms``: of columns whose texts have one."""
    if value.known_type == JSON:
        made = in_one_form(value)
        of_form(made.tree, text_forms.JSONB)
        return made
    if is_interval(value, rules):
        return value.of(of_form(interval_columns.kept(value.tree), text_forms.INTERVAL), pa.string())
    if rules is Rules.RISINGWAVE and isinstance(value.tree, exp.Column) and value.is_map:
        return value.of(entries_in_order(value.tree), value.type)
    if isinstance(value.tree, exp.Column) and value.tree.name in forms:
        of_form(value.tree, forms[value.tree.name])
    return value


def entries_in_order(tree: exp.Expr) -> exp.Expr:
    """A map as functions make it, its entries in the order of the keys; that of a record has them as they came."""
    return filled("map_from_entries(list_sort(map_entries({0})))", [tree])


def seen_as(column: Expr) -> pa.DataType:
    """The type of what a column holds, as functions see it."""
    return {text_forms.JSONB: JSON, text_forms.INTERVAL: interval_columns.INTERVAL}.get(column.form, column.type)


def interval_length(text: Expr) -> Expr:
    """Of the texts of intervals: by what they are put in order, and tested for being equal."""
    return Expr(interval_columns.length(interval_columns.read(text.tree)), interval_columns.LENGTH)


def is_interval(value: Typed, rules: Rules) -> bool:
    """Whether it is one that columns hold: in Timeplus' SQL there are none."""
    return rules is Rules.RISINGWAVE and bool(value.type == interval_columns.INTERVAL)
