"""Files of sqllogictest, run against a session: ``python -m tests.sqllogictest`` (docs/sqllogictest.md)."""
