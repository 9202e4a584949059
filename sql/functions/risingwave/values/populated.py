"""Values of JSON documents in the types of rows, arrays and maps: ``jsonb_populate_record`` and its kin."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from dovetail.sql.functions.documents import JSON
from dovetail.sql.functions.risingwave.values.casts import cast
from dovetail.sql.functions.risingwave.values.kinds import TEXT, engine_name, quoted, typed
from dovetail.sql.functions.risingwave.values.map_entries import from_entries, map_kind, row_of
from dovetail.sql.functions.risingwave.values.texts import document_text
from dovetail.sql.functions.typed import Typed, filled

_ELEMENTS = "CASE WHEN json_type({0}) = 'ARRAY' THEN CAST(json_extract({0}, '$[*]') AS VARCHAR[]) END"
_MEMBERS = (
    "CASE WHEN json_type({0}) = 'OBJECT' THEN list_zip(json_keys({0}), CAST(json_extract({0}, '$.*') AS VARCHAR[])) END"
)


def populated(document: Typed, kind: pa.DataType) -> Typed:
    """A document in a type; null is NULL, and a member that is not there."""
    if kind == JSON:
        return document
    if pa.types.is_struct(kind):
        made = _row(document, kind)
    elif pa.types.is_map(kind):
        made = _map(document, kind)
    elif pa.types.is_list(kind):
        inner = populated(document.of(exp.column("e_"), JSON), kind.value_type).tree
        elements = filled("list_transform({0}, lambda e_: {1})", [filled(_ELEMENTS, [document.tree]), inner])
        made = filled(f"CAST({{0}} AS {engine_name(kind)})", [elements])
    else:
        made = cast(document.of(document_text(document.tree), TEXT), kind).tree
    return document.of(made, kind)


def member(document: Typed, name: str) -> Typed:
    pointer = "/" + name.replace("~", "~0").replace("/", "~1")
    template = "CAST(json_extract({0}, {1}) AS VARCHAR)"
    return typed(document, template, [document.tree, quoted(pointer)], JSON)


def _row(document: Typed, kind: pa.DataType) -> exp.Expr:
    parts = [
        exp.PropertyEQ(
            this=exp.to_identifier(field.name, quoted=True),
            expression=populated(member(document, field.name), field.type).tree,
        )
        for field in kind
    ]
    row = exp.Struct(expressions=parts)
    return filled(
        f"CASE WHEN json_type({{0}}) = 'OBJECT' THEN CAST({{1}} AS {engine_name(kind)}) END", [document.tree, row]
    )


def _map(document: Typed, kind: pa.DataType) -> exp.Expr:
    map_kind(kind.key_type, kind.item_type)
    key = document.of(filled("m_[1]", []), TEXT)
    item = populated(document.of(filled("m_[2]", []), JSON), kind.item_type).tree
    entries = filled(
        "list_transform({0}, lambda m_: {1})",
        [filled(_MEMBERS, [document.tree]), row_of(cast(key, kind.key_type).tree, item)],
    )
    return from_entries(entries, kind)
