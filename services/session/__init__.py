"""A session: the statements of a user, carried out.

streams    CREATE STREAM, TABLE, SOURCE; ALTER
views      CREATE VIEW, CREATE MATERIALIZED VIEW
queries    PAUSE, RESUME, EXPLAIN
drop       DROP, TERMINATE
rows       INSERT, UPDATE, DELETE
select     SELECT, bounded or running
listing    SHOW, DESCRIBE
dead_letters  SHOW DEAD LETTERS, table(x.dead_letter)
replay     REPLAY
wait       WAIT FOR
verification  a view against its inputs
"""

from dovetail.services.session.context import agreed
from dovetail.services.session.result import Changelog, Done, Live, Result, Rows, Text
from dovetail.services.session.session import Session

__all__ = ["Changelog", "Done", "Live", "Result", "Rows", "Session", "Text", "agreed"]
