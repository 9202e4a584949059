"""Whether a cluster answers at all."""

from __future__ import annotations

import time

from confluent_kafka import KafkaException

from broker import clients
from broker.address import BrokerAddress
from changelog.errors import ServiceUnavailable

_ANSWER_S = 2.0
_ATTEMPT_S = 5.0


def broker_answers(brokers: BrokerAddress, timeout_s: float = _ANSWER_S) -> bool:
    """Whether the brokers list their topics within the time."""
    return _silence(brokers, timeout_s) == ""


def await_broker(brokers: BrokerAddress, timeout_s: float, process: str) -> None:
    """Return once the brokers answer to ``process``. Raises ServiceUnavailable after the time."""
    deadline = time.monotonic() + timeout_s
    while reason := _silence(brokers, min(_ATTEMPT_S, timeout_s)):
        if time.monotonic() > deadline:
            raise ServiceUnavailable(
                f"no broker answered at {brokers} within {timeout_s:g} s: {reason}",
                where=process,
                fix="start the broker (dovetail up), or set DOVETAIL_BROKERS to where it listens",
            )


def _silence(brokers: BrokerAddress, timeout_s: float) -> str:
    """Why they do not answer; '' if they do."""
    try:
        clients.admin(brokers).list_topics(timeout=timeout_s)
    except KafkaException as failure:
        return failure.args[0].str() or "no reason was given"
    return ""
