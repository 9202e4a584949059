"""What exists: streams, views, dictionaries, indexes, and the queries that run; kept in a SQL database."""

from dovetail.sql.catalog.catalog import Catalog
from dovetail.sql.catalog.records import Actual, Desired, Leadership, Query, Relation, What, Worker

__all__ = ["Actual", "Catalog", "Desired", "Leadership", "Query", "Relation", "What", "Worker"]
