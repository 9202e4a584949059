"""``Session``: statements in, results out.

What carries a statement out is imported when one is to be: what SHOW needs is there in half the time of a plan.
"""

# ruff: noqa: PLC0415 - a statement imports what it needs when it is run

from __future__ import annotations

from typing import TYPE_CHECKING

from dovetail.broker.address import BrokerAddress
from dovetail.changelog.errors import StackError
from dovetail.runtime.settings import Settings
from dovetail.services.known_stacks import other_stacks
from dovetail.services.session.context import Confirm, Context, RunnerFault, Say, no_fault, silent, unasked
from dovetail.services.session.result import Result
from dovetail.services.session.statement_table import STATEMENTS
from dovetail.services.stack import Stack
from dovetail.services.stack.state import Phase
from dovetail.sql.catalog import Catalog
from dovetail.sql.engines import Engine
from dovetail.sql.syntax.statements import Statement

if TYPE_CHECKING:
    from dovetail.services.session.verification.verify import Verification


class Session:
    """Executes statements against a catalog, the topics of ``brokers``, and the runner that acts on the catalog."""

    def __init__(
        self,
        settings: Settings,
        catalog: Catalog,
        brokers: BrokerAddress,
        *,
        runner_fault: RunnerFault = no_fault,
        say: Say = silent,
        confirm: Confirm = unasked,
    ) -> None:
        self.context = Context(settings, catalog, brokers, runner_fault, say, confirm)

    @staticmethod
    def open(settings: Settings, say: Say = silent, confirm: Confirm = unasked) -> Session:
        """A session of the local stack, or of what the settings name. Raises StackError where there is neither.

        ``confirm`` is asked where DROP .. CASCADE takes more than was named; without it such a DROP is refused.
        """
        stack = Stack(settings)
        connected = connected_settings(stack)
        address = connected.broker_address
        if address is None:
            raise StackError(
                "no stack is running",
                where=str(settings.data_dir),
                fix=f"dovetail up; or name brokers in DOVETAIL_BROKERS{other_stacks(settings)}",
            )
        catalog = Catalog.open(connected.catalog_address, python_functions=connected.runs_python_functions)
        return Session(
            connected,
            catalog,
            address,
            runner_fault=lambda engine: _runner_fault(stack, engine),
            say=say,
            confirm=confirm,
        )

    def close(self) -> None:
        self.context.catalog.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, script: str) -> list[Result]:
        """The results of all statements of ``script``."""
        from dovetail.sql.syntax.parse import parse

        return [self.execute(statement) for statement in parse(script)]

    def verify(self, view: str) -> Verification:
        from dovetail.services.session.verification.verify import verify

        return verify(self.context, view)

    def execute(self, statement: Statement) -> Result:
        """Raises a DovetailError that says what, where and how to go on."""
        return STATEMENTS[type(statement)].resolve()(self.context, statement)


def connected_settings(stack: Stack) -> Settings:
    """The settings with the addresses of what runs in the stack; an address that the settings name stands."""
    own = stack.settings
    named = {name: address for name, address in own if name in ("brokers", "redis_url") and address is not None}
    if own.brokers is not None:
        named["kafka_security_protocol"] = own.kafka_security_protocol
    return stack.connected_settings().model_copy(update=named)


def _runner_fault(stack: Stack, engine: str) -> str:
    """Why the local stack cannot run a query of this engine; '' if it can, or if the stack has no runner of its own."""
    lines = {line.name: line for line in stack.status()}
    if all(line.phase is Phase.STOPPED for line in lines.values()):
        return ""
    kafka, named = lines["kafka"], stack.settings.broker_address
    if named is not None and kafka.phase is Phase.READY and not named.meets(BrokerAddress(kafka.endpoint)):
        return (
            f"this session works with Kafka at {named}, as DOVETAIL_BROKERS says, and the local stack with its own at "
            f"{kafka.endpoint}; dovetail down, then up, lets it work with the other"
        )
    runner = lines[Engine(engine).component]
    if runner.phase is Phase.READY:
        return ""
    return f"the {Engine(engine).process} {runner.reason or f'is {runner.phase.value}'}"
