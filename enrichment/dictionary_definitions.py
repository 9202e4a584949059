"""From CREATE DICTIONARY to the definition of the dictionary."""

from __future__ import annotations

from dovetail.changelog.errors import Unsupported
from dovetail.dictionaries.check import define
from dovetail.dictionaries.definition.definition import Definition, LayoutSpec, SourceSpec
from dovetail.sql.syntax.statements import CreateDictionary

_COMPLEX = "complex_key_"
NEVER = (0, 0)


def definition_of(statement: CreateDictionary) -> Definition:
    """The definition, checked. Raises SqlError for what cannot be: an unknown source, layout, option, key column."""
    if statement.range_columns is not None:
        raise Unsupported(
            f"dictionary {statement.name} is looked up by a range of {' and '.join(statement.range_columns)}",
            where="CREATE DICTIONARY .. RANGE(..)",
            fix="leave RANGE out, and write the range as a condition of the join",
        )
    layout = statement.layout
    return define(
        name=statement.name,
        columns=statement.columns,
        key=statement.primary_key,
        source=SourceSpec(statement.source.name, statement.source.parameters),
        layout=LayoutSpec(layout.name.removeprefix(_COMPLEX), layout.parameters),
        lifetime_s=statement.lifetime_s or NEVER,
        settings=statement.settings,
    )
