"""Relations in a catalog, by the statements that make them."""

from __future__ import annotations

from dovetail.sql.catalog import Catalog, Query
from dovetail.sql.catalog.records import RelationDefinition
from dovetail.sql.syntax.parse import parse_one


def definition(text: str) -> RelationDefinition:
    statement = parse_one(text)
    assert isinstance(statement, RelationDefinition)
    return statement


def create(catalog: Catalog, text: str, *uses: str, query: Query | None = None) -> None:
    catalog.create(definition(text), now_ms=1, uses=uses, query=query)
