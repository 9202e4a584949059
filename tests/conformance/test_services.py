"""Cases through Kafka, Spark and lookup workers: the first of each feature, and a sample of the others."""

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
from tests.tries import tries

pytestmark = pytest.mark.services
SAMPLE, SEED = tries(6), 3


@pytest.fixture(scope="module")
def cluster(broker: str, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("conformance")
    with (
        temporary_stack(folder / "stack", ("redis",)) as stack,
        own_servers(folder / "servers", redis_url(stack)) as servers,
    ):
        yield Cluster(spark, broker, folder, servers)


def chosen() -> list[Case]:
    """What is refused is left to the memory engine, whose planner is the same."""
    not_yet = NotYet.read()
    files = sorted(CASES.rglob("*.yaml"), key=lambda file: (file.stem != "seeds", file))
    found = [case for file in files for case in load(file).cases if not not_yet.lists(case)]
    cases = [case for case in found if not case.feature.startswith("error")]
    first_of_feature = {case.feature: case for case in reversed(cases)}
    first = [case for case in cases if first_of_feature[case.feature] is case]
    return first + Selection(sample=SAMPLE, seed=SEED).of([case for case in cases if case not in first])


def test_cases_through_the_services(cluster: Cluster) -> None:
    failed = [f"{outcome.id}: {'; '.join(outcome.faults)}" for outcome in cluster.run(chosen()) if not outcome.passed]
    assert not failed, "\n".join(failed)
