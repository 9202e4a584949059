"""A session: the statements of a user, carried out.

streams    CREATE STREAM, TABLE, SOURCE; DROP
queries    CREATE MATERIALIZED VIEW, PAUSE, RESUME, TERMINATE, EXPLAIN
rows       INSERT, UPDATE, DELETE
select     SELECT, bounded or running
listing    SHOW, DESCRIBE
verify     a view against its inputs
"""

from services.session.result import Changelog, Done, Live, Result, Rows, Text
from services.session.session import Session

__all__ = ["Changelog", "Done", "Live", "Result", "Rows", "Session", "Text"]
