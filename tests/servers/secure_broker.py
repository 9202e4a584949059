"""A Kafka broker that is encrypted, and asks who its clients are: by password, by token or by certificate."""

from __future__ import annotations

import base64
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from dovetail.broker.address import BrokerAddress, BrokerSecurity, PasswordLogin, Tls
from dovetail.broker.presence import broker_answers
from dovetail.runtime.java import find_java
from dovetail.runtime.settings import read_settings
from dovetail.services.jars import jar_folder
from dovetail.services.stack.free_ports import choose_ports
from tests.servers.certificates import CLIENT, write_certificates
from tests.servers.process import PASSWORD, Server

USER = CLIENT
_LISTENERS = ("login", "plain", "shown", "expired", "foreign", "inside")
_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners={listeners}
advertised.listeners={advertised}
listener.security.protocol.map=LOGIN:SASL_SSL,PLAIN:SASL_SSL,SHOWN:SSL,EXPIRED:SSL,FOREIGN:SSL,INSIDE:PLAINTEXT,\
CONTROLLER:PLAINTEXT
inter.broker.listener.name=INSIDE
ssl.keystore.type=PEM
ssl.keystore.location={folder}/server.keystore.pem
ssl.truststore.type=PEM
ssl.truststore.location={folder}/ca.pem
listener.name.shown.ssl.client.auth=required
listener.name.expired.ssl.keystore.type=PEM
listener.name.expired.ssl.keystore.location={folder}/expired.keystore.pem
listener.name.foreign.ssl.keystore.type=PEM
listener.name.foreign.ssl.keystore.location={folder}/foreign.keystore.pem
listener.name.plain.sasl.enabled.mechanisms=PLAIN
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER
listener.name.login.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.login.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.login.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
user_{user}="{password}";
listener.name.plain.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
user_{user}="{password}";
listener.name.login.oauthbearer.sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule \
required unsecuredLoginStringClaim_sub="broker";
log.dirs={folder}/log
auto.create.topics.enable=false
group.initial.rebalance.delay.ms=0
offsets.topic.num.partitions=4
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.max.timeout.ms=3600000
log.cleaner.dedupe.buffer.size=16777216
"""


@dataclass(frozen=True)
class SecureBroker:
    """login    the server that asks for a password or a token
    plain    the one that takes a password by PLAIN alone
    shown    the one that asks for a certificate
    expired  one with a certificate of yesterday
    foreign  one with a certificate for another host
    inside   one that asks for nothing, and speaks in plain text
    folder   holds ``ca.pem``, ``client.pem`` and ``client.key``
    """

    login: str
    plain: str
    shown: str
    expired: str
    foreign: str
    inside: str
    folder: Path

    @property
    def tls(self) -> Tls:
        return Tls(str(self.folder / "ca.pem"))

    @property
    def by_certificate(self) -> BrokerAddress:
        shown = replace(self.tls, certificate=str(self.folder / "client.pem"), key=str(self.folder / "client.key"))
        return BrokerAddress(self.shown, BrokerSecurity(shown))

    def by_password(self, mechanism: str = "SCRAM-SHA-512", password: str = PASSWORD) -> BrokerAddress:
        return BrokerAddress(self.login, BrokerSecurity(self.tls, PasswordLogin(mechanism, USER, password)))


@contextmanager
def secure_broker(folder: Path) -> Iterator[SecureBroker]:
    """A running one."""
    controller, *ports = choose_ports(*[0] * (1 + len(_LISTENERS)))
    servers = {name: f"127.0.0.1:{port}" for name, port in zip(_LISTENERS, ports, strict=True)}
    write_certificates(folder)
    _write_keystores(folder)
    advertised = ",".join(f"{name.upper()}://{server}" for name, server in servers.items())
    properties = folder / "server.properties"
    properties.write_text(
        _PROPERTIES.format(
            folder=folder,
            listeners=f"{advertised},CONTROLLER://127.0.0.1:{controller}",
            advertised=advertised,
            controller=controller,
            user=USER,
            password=PASSWORD,
        )
    )
    settings = read_settings()
    jars = f"{jar_folder(settings, 'broker')}/*"
    java = [str(find_java().executable), "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", jars]
    _format(java, properties)
    plain = BrokerAddress(servers["inside"])
    server = Server(
        "secure kafka",
        [*java, "kafka.Kafka", str(properties)],
        folder,
        ports[0],
        USER,
        answers=lambda _: broker_answers(plain),
    )
    server.start()
    try:
        yield SecureBroker(**servers, folder=folder)
    finally:
        server.kill()


def _write_keystores(folder: Path) -> None:
    """Of the broker: a key and its certificate in one file."""
    for name in ("server", "expired", "foreign"):
        pair = [(folder / f"{name}.{kind}").read_bytes() for kind in ("key", "pem")]
        (folder / f"{name}.keystore.pem").write_bytes(b"".join(pair))


def _format(java: list[str], properties: Path) -> None:
    cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    users = [
        word
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
        for word in ("--add-scram", f"{mechanism}=[name={USER},password={PASSWORD}]")
    ]
    argv = [*java, "kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "-c", str(properties), *users]
    subprocess.run(argv, check=True, capture_output=True, text=True)
