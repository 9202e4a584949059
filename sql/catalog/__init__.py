"""What exists: streams, views, dictionaries, indexes, and the queries that run; kept in a SQL database."""

from dovetail.sql.catalog.catalog import Catalog
from dovetail.sql.catalog.records import (
    WORKED_MS,
    WORKED_ROWS,
    Actual,
    Desired,
    Leadership,
    Query,
    Relation,
    What,
    Worker,
)

__all__ = [
    "WORKED_MS",
    "WORKED_ROWS",
    "Actual",
    "Catalog",
    "Desired",
    "Leadership",
    "Query",
    "Relation",
    "What",
    "Worker",
]
