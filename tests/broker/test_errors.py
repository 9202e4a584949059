"""What the client of Kafka raises, as the one error that others know."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import Future

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from dovetail.broker.address import BrokerAddress, BrokerSecurity, Tls
from dovetail.broker.clients import admin, consumer, producer
from dovetail.broker.errors import BrokerError, BrokerFault, answer, broker_errors

NOBODY = BrokerAddress("127.0.0.1:1")


@pytest.mark.parametrize(
    ("code", "fault", "hopeless"),
    [
        (KafkaError.INVALID_PRODUCER_EPOCH, BrokerFault.FENCED, False),
        (KafkaError.UNKNOWN_MEMBER_ID, BrokerFault.NOT_A_MEMBER, False),
        (KafkaError.MSG_SIZE_TOO_LARGE, BrokerFault.TOO_LARGE, True),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, BrokerFault.REFUSED, True),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, BrokerFault.NO_TOPIC, False),
        (KafkaError.NOT_LEADER_FOR_PARTITION, BrokerFault.NO_LEADER, False),
        (KafkaError.FENCED_LEADER_EPOCH, BrokerFault.NO_LEADER, False),
        (KafkaError.UNKNOWN_LEADER_EPOCH, BrokerFault.NO_LEADER, False),
        (KafkaError.OFFSET_NOT_AVAILABLE, BrokerFault.NO_LEADER, False),
        (KafkaError.COORDINATOR_LOAD_IN_PROGRESS, BrokerFault.OTHER, False),
    ],
)
def test_a_code_of_the_library_is_a_fault_by_what_is_done_about_it(
    code: int, fault: BrokerFault, hopeless: bool
) -> None:
    with pytest.raises(BrokerError) as failed, broker_errors():
        raise KafkaException(KafkaError(code, "as told"))

    assert (failed.value.fault, failed.value.is_hopeless, failed.value.reason) == (fault, hopeless, "as told")


def test_a_callback_that_hides_what_was_raised_does_not_hide_it() -> None:
    with pytest.raises(BrokerError, match="fenced"), broker_errors():
        raise SystemError("returned a result with an exception set") from KafkaException(KafkaError(-144, "fenced"))


def test_a_system_error_of_another_cause_stays_one() -> None:
    with pytest.raises(SystemError), broker_errors():
        raise SystemError("a defect") from ValueError("elsewhere")


def test_an_answer_that_does_not_come_is_one_that_took_too_long() -> None:
    with pytest.raises(BrokerError) as failed:
        answer(Future[int](), 0)

    assert failed.value.fault is BrokerFault.TIMED_OUT


def test_spark_may_carry_it_from_a_worker_to_the_driver() -> None:
    error = BrokerError("down", BrokerFault.FENCED)
    carried = pickle.loads(pickle.dumps(error))

    assert (type(carried), str(carried), carried.fault) == (BrokerError, str(error), BrokerFault.FENCED)


@pytest.mark.parametrize("make", [admin, lambda to: consumer(to, "g", {}), lambda to: producer(to, {})])
def test_settings_that_the_library_refuses_are_refused_at_once(make: Callable[[BrokerAddress], object]) -> None:
    secret = BrokerSecurity(Tls(ca="/nowhere/ca.pem"))
    with pytest.raises(BrokerError, match=r"ssl\.ca\.location failed") as refused:
        make(BrokerAddress("127.0.0.1:1", secret))

    assert refused.value.is_hopeless


def test_every_client_raises_it() -> None:
    with pytest.raises(BrokerError):
        admin(NOBODY).list_topics(timeout=0.01)
    with pytest.raises(BrokerError):
        consumer(NOBODY, "g", {}).get_watermark_offsets(TopicPartition("t", 0), timeout=0.01)
    with pytest.raises(BrokerError):
        producer(NOBODY, {"transactional.id": "t"}).init_transactions(0.01)
