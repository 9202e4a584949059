"""A Kafka broker on the loopback interface: one node that is broker and KRaft controller."""

from __future__ import annotations

import base64
import socket
import subprocess
import uuid
from dataclasses import dataclass
from pathlib import Path

from dovetail.broker.address import BrokerAddress
from dovetail.broker.presence import broker_answers
from dovetail.changelog.errors import StackError
from dovetail.runtime.class_archive import ClassArchive
from dovetail.runtime.java import find_java
from dovetail.runtime.settings import Settings
from dovetail.services.jars import jar_folder
from dovetail.services.stack.component import Launch
from dovetail.services.stack.free_ports import LOOPBACK, choose_ports, port_of

# One node keeps one copy of everything. Few partitions in the internal topics keep start and stop short.
# There is no other broker to hand partitions over to: one that tries takes its partitions for deleted for a moment, and
# a transaction that is being committed then stays without its marks. So it stops as if it was killed, and its next
# start waits until its session has ended.
# Nothing is created by a typing error, and nothing is forgotten: the inputs are the history of the queries.
_SERVER_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller_port}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller_port}
advertised.listeners=PLAINTEXT://{host}:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={log_dirs}
auto.create.topics.enable=false
num.partitions=2
log.retention.ms=-1
group.initial.rebalance.delay.ms=0
offsets.topic.num.partitions=4
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.max.timeout.ms=3600000
controlled.shutdown.enable=false
broker.session.timeout.ms=6000
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
log.cleaner.dedupe.buffer.size=16777216
num.network.threads=2
num.io.threads=4
"""

_LOG_PROPERTIES = """\
rootLogger.level=WARN
rootLogger.appenderRef.out.ref=OUT
appender.out.type=Console
appender.out.name=OUT
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=%d{ISO8601} %p %m (%c{1})%n
logger.server.name=kafka.server.KafkaRaftServer
logger.server.level=INFO
logger.lifecycle.name=kafka.server.BrokerServer
logger.lifecycle.level=INFO
"""


@dataclass(frozen=True)
class KafkaBroker:
    name: str = "kafka"
    after: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    module: str | None = None
    reads_secrets: bool = False

    def prepare(self, settings: Settings) -> Launch:
        # After a crash at the same address as before: the components that run already know that one.
        preferred = port_of(settings.brokers, settings.kafka_port)
        port, controller_port = choose_ports(preferred, settings.kafka_controller_port)
        folder = settings.data_dir / "kafka"
        folder.mkdir(parents=True, exist_ok=True)
        server_properties = folder / "server.properties"
        server_properties.write_text(
            _SERVER_PROPERTIES.format(
                host=LOOPBACK, port=port, controller_port=controller_port, log_dirs=folder / "log"
            )
        )
        (folder / "log4j2.properties").write_text(_LOG_PROPERTIES)
        java = self._java(settings, folder)
        if not (folder / "log" / "meta.properties").exists():
            _format_storage(java, server_properties)
        return Launch((*java, "kafka.Kafka", str(server_properties)), endpoint=f"{LOOPBACK}:{port}")

    def _java(self, settings: Settings, folder: Path) -> tuple[str, ...]:
        jars = jar_folder(settings, "broker")
        return (
            str(find_java().executable),
            *ClassArchive.of_broker(settings.jars).options,
            f"-Xmx{settings.kafka_heap_mb}m",
            "-XX:+UseSerialGC",
            "-Djava.awt.headless=true",
            f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}",
            "-cp",
            f"{jars}/*",
        )

    def answers(self, settings: Settings, endpoint: str, pid: int) -> bool:
        # A client would go on asking for seconds, while other components wait to be started.
        return _listens(endpoint) and broker_answers(BrokerAddress(endpoint))

    def provided(self, settings: Settings) -> bool:
        return settings.brokers is not None

    def announce(self, settings: Settings, endpoint: str) -> Settings:
        # What asks for nothing is told nothing, whatever other brokers would ask for.
        return settings.model_copy(update={"brokers": endpoint, "kafka_security_protocol": "plaintext"})


def _listens(endpoint: str) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex((LOOPBACK, port_of(endpoint, 0))) == 0


def _format_storage(java: tuple[str, ...], server_properties: Path) -> None:
    cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    # One word: an id may begin with a dash, and would be taken for an option.
    argv = (*java, "kafka.tools.StorageTool", "format", f"--cluster-id={cluster_id}", "-c", str(server_properties))
    formatted = subprocess.run(argv, capture_output=True, text=True, check=False)
    if formatted.returncode != 0:
        raise StackError(
            f"the storage of Kafka could not be formatted: {formatted.stdout[-500:]}{formatted.stderr[-500:]}",
            where=str(server_properties.parent),
            fix="see that the disk has room and the folder can be written; an old folder can be deleted: make clean",
        )
