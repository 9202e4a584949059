"""What exists: streams, views, dictionaries, indexes, and the queries that run; kept in a SQL database."""

from sql.catalog.catalog import Catalog
from sql.catalog.records import Actual, Desired, Leadership, Query, Relation, What, Worker

__all__ = ["Actual", "Catalog", "Desired", "Leadership", "Query", "Relation", "What", "Worker"]
