"""What a worker and its children read from Dovetail's settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from dovetail.broker.address import BrokerAddress
from dovetail.dictionaries.cache.cold.redis_client import check_url
from dovetail.dictionaries.outside.outside import Outside
from dovetail.runtime.logs.query_logs import QueryLogFiles
from dovetail.runtime.settings import Settings
from dovetail.services.outside import outside_of
from dovetail.services.worker.lane.lane_settings import LaneSettings
from dovetail.services.worker.query.app import AppSettings


@dataclass(frozen=True)
class WorkerSettings:
    """data_dir   what the workers keep of each query is in it, which they could read from Kafka again"""

    brokers: BrokerAddress
    catalog_url: str = field(repr=False)
    redis_url: str | None = field(repr=False)
    data_dir: Path
    outside: Outside
    query_logs: QueryLogFiles
    output_partitions: int
    transaction_timeout_s: float
    broker_wait_s: float
    broker_timeout_s: float
    memo_ttl_s: float
    python_functions: bool
    app: AppSettings
    lane: LaneSettings

    @staticmethod
    def of(settings: Settings) -> WorkerSettings:
        """Raises StackError where the brokers are not known, or an address makes no sense."""
        return WorkerSettings(
            brokers=settings.expect_brokers("the lookup worker"),
            catalog_url=settings.catalog_address,
            redis_url=None if settings.redis_url is None else check_url(settings.redis_url.get_secret_value()),
            data_dir=settings.data_dir,
            outside=outside_of(settings),
            query_logs=QueryLogFiles.of(settings),
            output_partitions=settings.output_partitions,
            transaction_timeout_s=settings.transaction_timeout_s,
            broker_wait_s=settings.broker_wait_s,
            broker_timeout_s=settings.broker_timeout_s,
            memo_ttl_s=settings.memo_ttl_s,
            python_functions=settings.runs_python_functions,
            app=AppSettings(
                max_fetch_records=settings.worker_run_records, session_timeout_s=settings.worker_session_timeout_s
            ),
            lane=LaneSettings(
                commit_interval_s=settings.worker_commit_interval_ms / 1000,
                commit_records=settings.worker_commit_records,
                wait_s=settings.source_wait_s,
            ),
        )
