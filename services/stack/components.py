"""What the stack can start, in the order of starting. A new server is one new file and one line here."""

from __future__ import annotations

from collections.abc import Sequence

from dovetail.changelog.errors import StackError
from dovetail.changelog.suggest import choice
from dovetail.services.stack.component import Component
from dovetail.services.stack.servers.http_server import HttpServer
from dovetail.services.stack.servers.kafka import KafkaBroker
from dovetail.services.stack.servers.lookup_worker import LookupWorker
from dovetail.services.stack.servers.redis_server import RedisServer
from dovetail.services.stack.servers.schema_registry import SchemaRegistry
from dovetail.services.stack.servers.spark_runner import SparkRunner

COMPONENTS: tuple[Component, ...] = (
    KafkaBroker(),
    RedisServer(),
    SchemaRegistry(),
    SparkRunner(),
    LookupWorker(),
    HttpServer(),
)
COMPONENT_NAMES: tuple[str, ...] = tuple(component.name for component in COMPONENTS)


def component(name: str) -> Component:
    """The component of that name; :class:`StackError` names the known ones."""
    for known in COMPONENTS:
        if known.name == name:
            return known
    raise StackError(f"the stack has no component {name!r}", fix=choice(name, COMPONENT_NAMES))


def in_start_order(names: Sequence[str]) -> list[Component]:
    """The named components in the order in which they are started; each unknown name is an error."""
    wanted = {component(name).name for name in names}
    return [known for known in COMPONENTS if known.name in wanted]
