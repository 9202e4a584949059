"""What the client of Kafka says of a fault, as an error of Dovetail: nobody above knows the codes of the library."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from enum import Enum, auto
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException

from dovetail.changelog.errors import ServiceUnavailable

Answer = TypeVar("Answer")


class BrokerFault(Enum):
    """What is wrong, as far as somebody does something about it."""

    FENCED = auto()
    """Another producer has taken over the transactional id."""
    NOT_A_MEMBER = auto()
    """The consumer group has given the partition to somebody else."""
    TOO_LARGE = auto()
    """The topic of a message takes none of its size."""
    REFUSED = auto()
    """The brokers are there, and do not do this for this client."""
    LOGIN = auto()
    TLS = auto()
    TIMED_OUT = auto()
    """A call was not answered in time."""
    NOT_SENT = auto()
    """A message was not taken in time."""
    ALL_DOWN = auto()
    NO_TOPIC = auto()
    TOPIC_EXISTS = auto()
    BAD_TOPIC = auto()
    """No topic can have this name, or these settings."""
    BAD_SHAPE = auto()
    """Nor so many partitions or replicas."""
    NO_LEADER = auto()
    """For a moment no broker serves the partition."""
    RECORDS_GONE = auto()
    """The record at an offset was deleted, or is not there yet."""
    END_OF_PARTITION = auto()
    """A notice, and no fault: all was read that is there."""
    OTHER = auto()


_CODES = {
    BrokerFault.FENCED: "_FENCED PRODUCER_FENCED INVALID_PRODUCER_EPOCH INVALID_PRODUCER_ID_MAPPING",
    BrokerFault.NOT_A_MEMBER: "ILLEGAL_GENERATION UNKNOWN_MEMBER_ID FENCED_INSTANCE_ID",
    BrokerFault.TOO_LARGE: "MSG_SIZE_TOO_LARGE",
    BrokerFault.REFUSED: "TOPIC_AUTHORIZATION_FAILED TRANSACTIONAL_ID_AUTHORIZATION_FAILED CLUSTER_AUTHORIZATION_FAILED"
    " INVALID_TRANSACTION_TIMEOUT _INVALID_ARG",
    BrokerFault.LOGIN: "_AUTHENTICATION SASL_AUTHENTICATION_FAILED UNSUPPORTED_SASL_MECHANISM",
    BrokerFault.TLS: "_SSL",
    BrokerFault.TIMED_OUT: "_TIMED_OUT",
    BrokerFault.NOT_SENT: "_MSG_TIMED_OUT",
    BrokerFault.ALL_DOWN: "_ALL_BROKERS_DOWN",
    BrokerFault.NO_TOPIC: "UNKNOWN_TOPIC_OR_PART",
    BrokerFault.TOPIC_EXISTS: "TOPIC_ALREADY_EXISTS",
    BrokerFault.BAD_TOPIC: "TOPIC_EXCEPTION INVALID_CONFIG POLICY_VIOLATION",
    BrokerFault.BAD_SHAPE: "INVALID_REPLICATION_FACTOR INVALID_PARTITIONS",
    BrokerFault.NO_LEADER: "NOT_LEADER_FOR_PARTITION LEADER_NOT_AVAILABLE FENCED_LEADER_EPOCH UNKNOWN_LEADER_EPOCH"
    " OFFSET_NOT_AVAILABLE",
    BrokerFault.RECORDS_GONE: "_AUTO_OFFSET_RESET OFFSET_OUT_OF_RANGE",
    BrokerFault.END_OF_PARTITION: "_PARTITION_EOF",
}
"""The library's own codes, as against those of the broker, begin with an underscore, and are public."""
_FAULTS = {getattr(KafkaError, code): fault for fault, codes in _CODES.items() for code in codes.split()}
_HOPELESS = frozenset({BrokerFault.TOO_LARGE, BrokerFault.REFUSED, BrokerFault.LOGIN})


class BrokerError(ServiceUnavailable):
    """A call to the broker failed; ``reason`` is what the client says of it."""

    def __init__(self, reason: str, fault: BrokerFault = BrokerFault.OTHER) -> None:
        super().__init__(
            f"the broker did not answer: {reason}", fix="see that the broker runs; it is tried again by itself"
        )
        self.reason = reason
        self.fault = fault

    @staticmethod
    def of(error: KafkaError) -> BrokerError:
        return BrokerError(error.str(), fault_of(error))

    @property
    def is_hopeless(self) -> bool:
        """Trying again does not help; anything else may pass."""
        return self.fault in _HOPELESS

    def __reduce__(self) -> tuple[object, ...]:
        return BrokerError, (self.reason, self.fault)


def fault_of(error: KafkaError) -> BrokerFault:
    return _FAULTS.get(error.code(), BrokerFault.OTHER)


@contextmanager
def broker_errors() -> Iterator[None]:
    """What the client raises in the block is raised as BrokerError.

    A producer that is fenced while it calls those back who wait for their messages goes on calling back with its
    exception pending. Python then knows of nothing but a callback that has "returned a result with an exception set",
    which would pass for a defect.
    """
    try:
        yield
    except KafkaException as failure:
        raise BrokerError.of(failure.args[0]) from failure
    except TimeoutError as failure:
        raise BrokerError("no answer in time", BrokerFault.TIMED_OUT) from failure
    except SystemError as overtaken:
        cause = overtaken.__cause__
        while isinstance(cause, SystemError):
            cause = cause.__cause__
        if not isinstance(cause, KafkaException):
            raise
        raise BrokerError.of(cause.args[0]) from cause


def answer(future: Future[Answer], timeout_s: float) -> Answer:
    """What a call of an admin gives in the end."""
    with broker_errors():
        return future.result(timeout_s)
