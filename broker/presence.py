"""Whether a cluster answers, and why it does not: asked once, waited for, or looked at all the time."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaError

from dovetail.broker import clients
from dovetail.broker.address import BrokerAddress, host_and_port
from dovetail.broker.errors import BrokerError, BrokerFault, answer
from dovetail.changelog.errors import ServiceUnavailable
from dovetail.changelog.work.supervised_thread import PeriodicThread

_ANSWER_S = 2.0
_ATTEMPT_S = 5.0
_REFUSED_S = 3.0
_REFUSED_POLL_S = 0.1
_LOOK_S = 1.0
_LOOK_ANSWER_S = 3.0
_SILENT_S = 4.0
"""A broker that answers after so long is slow, and not gone."""
_START = (
    "dovetail status shows whether the broker runs; dovetail up starts it; "
    "DOVETAIL_BROKERS names brokers elsewhere, DOVETAIL_BROKER_TIMEOUT_S the wait"
)
_MEND_LOGIN = "set DOVETAIL_KAFKA_SASL_MECHANISM, _USERNAME and _PASSWORD to what the broker knows; docs/security.md"
_MEND_TLS = (
    "a certificate must be valid, of an authority that the other side knows (DOVETAIL_KAFKA_SSL_CA_LOCATION), and for "
    "the host that DOVETAIL_BROKERS names; docs/security.md"
)
_MEND_PROTOCOL = (
    "set DOVETAIL_KAFKA_SECURITY_PROTOCOL to what that port of the broker speaks: plaintext, ssl, sasl_plaintext or "
    "sasl_ssl; docs/security.md"
)


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """Why brokers do not answer, and what may help."""

    reason: str
    fix: str = _START


def broker_answers(brokers: BrokerAddress, timeout_s: float = _ANSWER_S) -> bool:
    """Whether the brokers list their topics within the time."""
    return no_answer(brokers, timeout_s) is None


def await_broker(brokers: BrokerAddress, timeout_s: float, process: str) -> None:
    """Return once the brokers answer to ``process``. Raises ServiceUnavailable after the time."""
    deadline = time.monotonic() + timeout_s
    while found := no_answer(brokers, min(_ATTEMPT_S, timeout_s)):
        if time.monotonic() > deadline:
            raise ServiceUnavailable(
                f"no broker answered at {brokers} within {timeout_s:g} s: {found.reason}", where=process, fix=found.fix
            )


def expect_listening(brokers: BrokerAddress, timeout_s: float) -> None:
    """Raises ServiceUnavailable where all of them refuse connections for so long, or longer than a start takes. One
    that is reached and silent is left to the call that waits for it.
    """
    wait_s = min(timeout_s, _REFUSED_S)
    deadline = time.monotonic() + wait_s
    while all(map(_refuses, brokers.each)):
        if time.monotonic() > deadline:
            raise ServiceUnavailable(
                f"Kafka does not answer within {wait_s:g} s: nothing listens there, the connection is refused",
                where=f"brokers {brokers}",
                fix=_START,
            )
        time.sleep(_REFUSED_POLL_S)


def _refuses(server: str) -> bool:
    host, port = host_and_port(server)
    try:
        socket.create_connection((host, int(port)), _ANSWER_S).close()
    except ConnectionRefusedError:
        return True
    except (OSError, ValueError):
        return False
    return False


def no_answer(brokers: BrokerAddress, timeout_s: float) -> NoAnswer | None:
    """Why they do not answer within the time; None if they do."""
    heard: list[BrokerError] = []
    client = clients.admin(brokers, {"error_cb": lambda error: heard.append(BrokerError.of(error))})
    try:
        client.list_topics(timeout=timeout_s)
    except BrokerError as failure:
        client.poll(0)
        return _explained([*heard, failure], brokers)
    return None


def _explained(heard: Sequence[BrokerError], brokers: BrokerAddress) -> NoAnswer:
    """What a client hears of its connections says more than the error of the call that waited for them."""
    reasons = [error for error in heard if error.fault is not BrokerFault.ALL_DOWN]
    for error in reasons:
        if refusal := _refusal(error):
            return refusal
    if len(reasons) == 1 < len(heard):
        protocol = brokers.security.protocol
        return NoAnswer(f"a broker was reached, and hung up on one that speaks {protocol}", _MEND_PROTOCOL)
    return NoAnswer(reasons[0].reason or "no reason was given")


def _refusal(error: BrokerError) -> NoAnswer | None:
    """What to do where the brokers are there, and do not take this client."""
    text = error.reason
    if "PLAINTEXT broker listener" in text or "supported mechanisms:  " in text:
        return NoAnswer(text, _MEND_PROTOCOL)
    if error.fault is BrokerFault.LOGIN:
        return NoAnswer(text, _MEND_LOGIN)
    if error.fault is BrokerFault.TLS or "SSL routines" in text:
        return NoAnswer(text, _MEND_TLS)
    return None


class BrokerWatch:
    """A thread that asks, from ``start`` to ``stop``."""

    def __init__(self, brokers: BrokerAddress) -> None:
        self._brokers = brokers
        self._answered_s = time.monotonic()
        self._refused = ""
        self._client: clients.Admin | None = None
        self._thread = PeriodicThread("broker-watch", _LOOK_S, self._ask)

    def start(self) -> None:
        self._answered_s = time.monotonic()
        self._thread.start()

    def stop(self) -> None:
        self._thread.close(0)

    @property
    def trouble(self) -> str:
        """Why nothing can be read or written now; '' while the brokers answer."""
        silent_s = time.monotonic() - self._answered_s
        if silent_s < _SILENT_S:
            return ""
        refused = f": {self._refused}" if self._refused else ""
        return f"no broker has answered at {self._brokers} for {silent_s:.0f} s{refused}"

    def _hear(self, error: KafkaError) -> None:
        if refusal := _refusal(BrokerError.of(error)):
            self._refused = refusal.reason

    def _ask(self) -> None:
        self._client = self._client or clients.admin(self._brokers, {"error_cb": self._hear})
        try:
            answer(self._client.describe_cluster(request_timeout=_LOOK_ANSWER_S), _LOOK_ANSWER_S)
        except BrokerError:
            self._client.poll(0)
            return
        self._refused = ""
        self._answered_s = time.monotonic()
