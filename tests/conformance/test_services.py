"""Cases through Kafka, Spark and lookup workers: those of the seeds, and a sample of the others, always the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from dovetail.services.stack import temporary_stack
from tests.conformance.case import Case
from tests.conformance.load import load
from tests.conformance.not_yet import NotYet
from tests.conformance.selection import Selection
from tests.conformance.servers import own_servers, redis_url
from tests.conformance.services import Cluster
from tests.paths import CASES

pytestmark = pytest.mark.services
SAMPLE, SEED = 12, 3


@pytest.fixture(scope="module")
def cluster(broker: str, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("conformance")
    with (
        temporary_stack(folder / "stack", ("redis",)) as stack,
        own_servers(folder / "servers", redis_url(stack)) as servers,
    ):
        yield Cluster(spark, broker, folder, servers)


def chosen() -> list[Case]:
    """Cases that are not run yet are left to the memory engine, which is refused by the same planner."""
    not_yet = NotYet.read()
    seeds, others = (
        [case for file in sorted(CASES.rglob("*.yaml")) if (file.stem == "seeds") is seed for case in load(file).cases]
        for seed in (True, False)
    )
    drawn = Selection(sample=SAMPLE, seed=SEED).of([case for case in others if not not_yet.lists(case)])
    return [case for case in seeds if not not_yet.lists(case)] + drawn


def test_cases_through_the_services(cluster: Cluster) -> None:
    failed = [f"{outcome.id}: {'; '.join(outcome.faults)}" for outcome in cluster.run(chosen()) if not outcome.passed]
    assert not failed, "\n".join(failed)
