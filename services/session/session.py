"""``Session``: statements in, results out."""

from __future__ import annotations

from broker.address import BrokerAddress
from changelog.errors import StackError
from runtime.settings import Settings
from services.known_stacks import elsewhere
from services.session import listing, queries, rows
from services.session.alter.alter_view import alter_view
from services.session.backup.backup_view import backup_view
from services.session.backup.restore_view import restore_view
from services.session.context import Confirm, Context, RunnerFault, Say, no_fault, silent, unasked
from services.session.dictionaries import dictionary_statements as dictionaries
from services.session.drop import drop, terminate
from services.session.functions import create_function
from services.session.live.analyze import explain_analyze
from services.session.replay.replay import replay
from services.session.result import Done, Result
from services.session.select import select
from services.session.streams import alter_stream, create_index, create_stream
from services.session.tail.print_topic import print_topic
from services.session.verification.verify import Verification, verify
from services.session.views import create_view
from services.session.why.why import why
from services.stack import Stack
from services.stack.state import Phase
from sql.catalog import Catalog
from sql.fragments import Engine
from sql.syntax.parse import parse
from sql.syntax.statements import (
    AlterStream,
    AlterView,
    BackupView,
    CreateDictionary,
    CreateFunction,
    CreateIndex,
    CreateStream,
    CreateView,
    Delete,
    Describe,
    Drop,
    Explain,
    ExplainAnalyze,
    ExplainView,
    Insert,
    Pause,
    Print,
    Replay,
    RestoreView,
    Resume,
    Select,
    Show,
    ShowCreate,
    Statement,
    System,
    Terminate,
    Update,
    Why,
)


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
                fix=f"dovetail up; or name brokers in DOVETAIL_BROKERS{elsewhere(settings)}",
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
        return [self.execute(statement) for statement in parse(script)]

    def verify(self, view: str) -> Verification:
        return verify(self.context, view)

    def execute(self, statement: Statement) -> Result:
        """Raises a DovetailError that says what, where and how to go on."""
        context = self.context
        match statement:
            case CreateStream():
                return create_stream(context, statement)
            case AlterStream():
                return alter_stream(context, statement)
            case CreateView():
                return create_view(context, statement)
            case CreateIndex():
                return create_index(context, statement)
            case CreateDictionary():
                return dictionaries.create_dictionary(context, statement)
            case Insert():
                return rows.insert(context, statement)
            case Update():
                return rows.update(context, statement)
            case Delete():
                return rows.delete(context, statement)
            case Select():
                return select(context, statement)
            case _:
                return self._command(statement)

    def _command(self, statement: Statement) -> Result:
        context = self.context
        match statement:
            case AlterView():
                return alter_view(context, statement)
            case CreateFunction():
                return create_function(context, statement)
            case Drop():
                return drop(context, statement)
            case _:
                return self._look(statement)

    def _look(self, statement: Statement) -> Result:
        context = self.context
        match statement:
            case Show():
                return listing.show(context, statement)
            case Describe():
                return listing.describe(context, statement)
            case ShowCreate():
                return listing.show_create(context, statement)
            case Explain():
                return queries.explain(context, statement)
            case ExplainView():
                return queries.explain_view(context, statement)
            case Print():
                return print_topic(context, statement)
            case ExplainAnalyze():
                return explain_analyze(context, statement)
            case _:
                return self._order(statement)

    def _order(self, statement: Statement) -> Result:
        context = self.context
        match statement:
            case Pause():
                return queries.pause(context, statement)
            case Resume():
                return queries.resume(context, statement)
            case Terminate():
                return terminate(context, statement)
            case Replay():
                return replay(context, statement)
            case System():
                return dictionaries.reload(context, statement)
            case BackupView():
                return backup_view(context, statement)
            case RestoreView():
                return restore_view(context, statement)
            case Why():
                return why(context, statement)
        return Done("")


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
    component, noun = ("worker", "lookup worker") if engine == Engine.FAUST else ("spark", "Spark runner")
    runner = lines[component]
    if runner.phase is Phase.READY:
        return ""
    return f"the {noun} {runner.reason or f'is {runner.phase.value}'}"
