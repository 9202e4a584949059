"""Messages of a producer out of Arrow columns, without an object of Python for each.

``rd_kafka_produce_batch`` of librdkafka takes an array of ``rd_kafka_message_t``, a public struct. Here numpy fills it:
the addresses and the lengths of what lies in the columns. The library copies that before it returns, and leaves in each
struct whether it took the message. Everything else, transactions and rights among it, stays with the ``Producer`` of
confluent_kafka, whose ``rd_kafka_t`` is borrowed for the call; no callback of Python runs in it.

Where that ``rd_kafka_t`` lies in the object is not public. So it is borrowed only of releases that are known
(``_RELEASES``, held by a test); of others a producer is given objects, as ``broker.producer_queue`` says.

A consumer must not be borrowed so: once the broker is lost, its callbacks run outside of the call that they expect,
which ends the process.
"""

from __future__ import annotations

import ctypes
import sys
from functools import lru_cache
from importlib.metadata import version

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from confluent_kafka import KafkaError, Producer, cimpl

from dovetail.broker.errors import BrokerError
from dovetail.changelog.encode import Encoded

_RELEASES = ("2.16.1",)
"""Of confluent_kafka: their producers begin with the pointer to their ``rd_kafka_t``."""
_COPY = 2
"""RD_KAFKA_MSG_F_COPY: what the messages point to is no longer needed after the call."""
_PRODUCER = 0
"""RD_KAFKA_PRODUCER."""
_SOMEWHERE = ctypes.create_string_buffer(1)
"""Where an empty text lies: one at no address would be a null."""

Words = npt.NDArray[np.uint64]


class _Message(ctypes.Structure):
    """``rd_kafka_message_t`` of rdkafka.h; pointers as numbers, which is how numpy takes them."""

    _fields_ = (
        ("err", ctypes.c_int),
        ("rkt", ctypes.c_size_t),
        ("partition", ctypes.c_int32),
        ("payload", ctypes.c_size_t),
        ("len", ctypes.c_size_t),
        ("key", ctypes.c_size_t),
        ("key_len", ctypes.c_size_t),
        ("offset", ctypes.c_int64),
        ("private", ctypes.c_size_t),
    )


_MESSAGE = np.dtype(_Message)


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL | None:
    """The librdkafka that confluent_kafka itself uses; None where its producers cannot be borrowed from."""
    if version("confluent-kafka") not in _RELEASES or sys.implementation.name != "cpython":
        return None
    try:
        # It is found among what the extension module depends on: a second one, opened by its path, would know of none
        # of the producers.
        found = ctypes.CDLL(cimpl.__file__)
        _declare(found, "rd_kafka_type", ctypes.c_int, ctypes.c_void_p)
        _declare(found, "rd_kafka_last_error", ctypes.c_int)
        _declare(found, "rd_kafka_topic_new", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        _declare(found, "rd_kafka_topic_destroy", None, ctypes.c_void_p)
        batch = (ctypes.c_void_p, ctypes.c_int32, ctypes.c_int, ctypes.c_void_p, ctypes.c_int)
        _declare(found, "rd_kafka_produce_batch", ctypes.c_int, *batch)
    except (OSError, AttributeError):
        return None
    return found


def _declare(found: ctypes.CDLL, name: str, result: type | None, *arguments: type) -> None:
    function = getattr(found, name)
    function.restype, function.argtypes = result, arguments


def produce(rdkafka: ctypes.CDLL, producer: Producer, topic: str, records: Encoded, partition: int) -> None:
    """Queue ``records``, in order. Raises BrokerError with why one was refused, when others may have been taken."""
    count = len(records)
    messages = np.zeros(count, _MESSAGE)
    messages["payload"], messages["len"] = _places(records.value_column)
    if records.key_column is not None:
        messages["key"], messages["key_len"] = _places(records.key_column)
    place = rdkafka.rd_kafka_topic_new(_borrowed(rdkafka, producer), topic.encode(), None)
    if not place:
        raise BrokerError.of(KafkaError(rdkafka.rd_kafka_last_error()))
    try:
        taken = rdkafka.rd_kafka_produce_batch(place, partition, _COPY, messages.ctypes.data, count)
    finally:
        rdkafka.rd_kafka_topic_destroy(place)
    if taken != count:
        errors = messages["err"]
        raise BrokerError.of(KafkaError(int(errors[errors != 0][0])))


def _borrowed(rdkafka: ctypes.CDLL, producer: Producer) -> int:
    """The address of its ``rd_kafka_t``, which lives as long as the producer is not closed."""
    address = ctypes.c_void_p.from_address(id(producer) + object.__basicsize__).value
    if address is None or rdkafka.rd_kafka_type(address) != _PRODUCER:
        raise RuntimeError("the producer is closed")
    return address


def _places(column: pa.Array) -> tuple[Words, Words]:
    """Where the values of a column of large binaries lie, and how long they are; a null lies at 0."""
    count = len(column)
    if not count:
        return np.zeros(0, np.uint64), np.zeros(0, np.uint64)
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int64, count + 1, column.offset * 8).astype(np.uint64)
    first = data.address if data is not None and data.size else ctypes.addressof(_SOMEWHERE)
    places, lengths = ends[:-1] + np.uint64(first), np.diff(ends)
    if column.null_count:
        null = column.is_null().to_numpy(zero_copy_only=False)
        places[null], lengths[null] = 0, 0
    return places, lengths
