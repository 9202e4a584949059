"""The topics behind the names of the catalog."""

from __future__ import annotations

from changelog.errors import Unsupported
from sql.catalog import Catalog
from sql.query import plan_query
from sql.relations import Stream
from sql.statements import CreateStream, CreateView


def stream_of(catalog: Catalog, name: str) -> Stream:
    """The topic behind a stream or a materialized view, and its schema."""
    definition = catalog.get(name).definition
    match definition:
        case CreateStream():
            return Stream.declared(definition)
        case CreateView() if definition.materialized:
            return plan_query(name, definition, catalog).stream()
    raise Unsupported(
        f'"{name}" is no stream: it has no topic', fix="SHOW STREAMS and SHOW VIEWS list those that have one"
    )
