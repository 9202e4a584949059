"""The services engine: a session of a stack with Kafka, Redis, Spark and a lookup worker."""

from __future__ import annotations

from dovetail.changelog.errors import DovetailError
from dovetail.services.session import Session
from dovetail.services.session.context import agreed
from dovetail.services.stack import Stack
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.statements import WaitFor
from tests.sqllogictest.session import SuiteSession, ViewFailed


class ServicesSession(SuiteSession):
    """A session of a running stack."""

    @staticmethod
    def of(stack: Stack, rules: Rules) -> ServicesSession:
        return ServicesSession(Session.open(stack.connected_settings(), confirm=agreed), rules)

    def settle(self) -> None:
        for query in self._session.context.catalog.queries():
            if query.name == query.view and self._session.context.catalog.find(query.view) is not None:
                try:
                    self._session.execute(WaitFor(query.view))
                except DovetailError as fault:
                    raise ViewFailed(f"view {query.view}: {fault}") from fault
