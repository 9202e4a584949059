"""What exists: streams, views, dictionaries, indexes, and the queries that run; kept in a SQL database."""

from sql.catalog.catalog import Catalog
from sql.catalog.records import Actual, Desired, Lease, Query, Relation, What, Worker

__all__ = ["Actual", "Catalog", "Desired", "Lease", "Query", "Relation", "What", "Worker"]
