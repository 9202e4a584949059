"""The settings of Dovetail: one declared list, read once at start.

Each comes from the environment variable ``DOVETAIL_<NAME>`` (or ``.env`` in the working directory), else from its
default; an empty variable is an unset one. Units are in the names. Secrets are ``SecretStr``: they never print.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import quote

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from dovetail.broker.address import BrokerAddress
from dovetail.changelog.errors import StackError, UnknownName
from dovetail.changelog.suggest import suggestion
from dovetail.runtime.env_files import expect_own
from dovetail.runtime.kafka_security import AbsolutePath, KafkaSecurity
from dovetail.runtime.serving.registry_settings import RegistrySettings
from dovetail.runtime.serving.serve_settings import Names, ServeSettings
from dovetail.runtime.storage.places import checked_location

Port = Annotated[int, Field(ge=0, le=65535)]
Seconds = Annotated[float, Field(gt=0)]
ENV_FILES = (Path(".env"),)
CheckpointPlace = Annotated[str, BeforeValidator(str), AfterValidator(checked_location)]


def _user_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dovetail" / "jars"


class Settings(ServeSettings, RegistrySettings, KafkaSecurity, BaseSettings):
    """Every setting: name, type, default, help."""

    model_config = SettingsConfigDict(
        env_prefix="DOVETAIL_",
        env_ignore_empty=True,
        frozen=True,
        extra="ignore",
        validate_default=True,
    )

    data_dir: AbsolutePath = Field(default=Path(".dovetail"), description="where the local stack keeps everything")
    jar_dir: AbsolutePath | None = Field(default=None, description="jars of this checkout; unset: in data_dir")
    jar_cache: AbsolutePath = Field(default_factory=_user_cache, description="jars fetched once per machine")
    ivy_settings: AbsolutePath | None = Field(default=None, description="Ivy settings file of an own jar mirror")
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(default="INFO", description="least level logged")
    log_format: Literal["text", "json"] = Field(
        default="text", description="how log lines look; json: an object for each"
    )

    log_max_bytes: int = Field(
        default=10 << 20, ge=4096, description="largest file of a log of the stack or of a query, in bytes"
    )
    log_files: int = Field(
        default=5, ge=1, description="files of each log that are kept, the one that is written among them"
    )

    brokers: str | None = Field(
        default=None, description="Kafka bootstrap servers; unset: the broker of the local stack"
    )
    redis_url: SecretStr | None = Field(default=None, description="Redis; unset: the one of the local stack")
    catalog_url: SecretStr | None = Field(
        default=None, description="SQLAlchemy URL of the catalog; unset: SQLite in data_dir"
    )
    catalog_password: SecretStr | None = Field(
        default=None, description="password of the catalog's user, as it is; unset: the one in the URL"
    )

    kafka_port: Port = Field(default=9092, description="port of the local broker; 0 or taken: a free one")
    kafka_controller_port: Port = Field(
        default=9093, description="port of the broker's controller; 0 or taken: a free one"
    )
    redis_port: Port = Field(default=6379, description="port of the local Redis; 0 or taken: a free one")
    kafka_heap_mb: int = Field(default=512, ge=128, description="heap of the local broker in MiB")
    redis_memory_mb: int = Field(
        default=256, ge=1, description="memory of the local Redis in MiB; least used keys leave first"
    )
    start_timeout_s: Seconds = Field(
        default=90, description="longest wait for a component of the stack to become healthy"
    )
    stop_timeout_s: Seconds = Field(default=20, description="wait between asking a component to stop and killing it")
    broker_timeout_s: Seconds = Field(default=30, description="longest wait for Kafka to answer at start")
    command_timeout_s: Seconds = Field(
        default=10, description="longest wait for all lookup workers to answer a command"
    )

    spark_master: str = Field(default="local[*]", description="Spark master URL")
    spark_conf: str | None = Field(
        default=None, description="settings of Spark: spark.key=value and properties files, cut as a shell cuts words"
    )
    engine_memory_mb: int = Field(
        default=2048,
        ge=64,
        description="memory that DuckDB may take in the HTTP server and for a lookup query, for all threads, in MiB",
    )
    driver_memory_gib: int = Field(default=3, ge=1, description="heap of the Spark driver in GiB")
    checkpoint_dir: CheckpointPlace | None = Field(
        default=None, description="checkpoints of the queries: a folder, or `s3a://bucket/prefix`; unset: in data_dir"
    )
    local_copy_dir: AbsolutePath | None = Field(
        default=None, description="mapped copies of the state; unset: in data_dir, or in each executor's own folder"
    )
    local_copy_max_bytes: int = Field(default=64 << 30, ge=0, description="largest local copy of a bucket")
    local_copies_max_bytes: int = Field(
        default=64 << 30, ge=0, description="all local copies on one machine; those used longest ago go first"
    )
    buckets: int | None = Field(
        default=None,
        ge=1,
        le=1024,
        description="key buckets of a query at its first start; ALTER VIEW changes them. Unset: one, or as many as"
        " there are cores where it has much to read, or one core no longer keeps up",
    )
    pack_after_s: Annotated[float, Field(ge=0)] = Field(
        default=60, description="how long small views are quiet before they share a streaming query; 0: they never do"
    )
    pack_state_bytes: int = Field(default=64 << 20, ge=0, description="largest state of a view that shares one")
    pack_rows_per_s: Seconds = Field(default=1_000, description="most rows a second that a view reads that shares one")
    max_offsets_per_trigger: int = Field(default=2_000_000, ge=1, description="most records that one micro-batch reads")
    max_bytes_per_trigger: int | None = Field(
        default=None,
        ge=1,
        description="about the most bytes that its records have; unset: by memory and cores, 32 to 256 MiB",
    )
    output_partitions: int = Field(default=1, ge=1, description="partitions of an output topic created for a query")
    broker_wait_s: Seconds = Field(
        default=120, description="longest wait for a lost broker before a query is started again"
    )
    transaction_timeout_s: Seconds = Field(
        default=600, description="life of an output transaction; above the longest batch"
    )

    runner_port: Port = Field(
        default=6067, description="port of the Spark runner's health and metrics; 0 or taken: a free one"
    )
    runner_bind: str = Field(default="127.0.0.1", description="address that the Spark runner's port is bound to")
    runner_hosts: Names | None = Field(
        default=None, description="names by which that port is asked, besides its address and localhost: `spark,runner`"
    )
    worker_port: Port = Field(
        default=6066, description="port of a lookup worker's health and metrics; 0 or taken: a free one"
    )
    worker_bind: str = Field(default="127.0.0.1", description="address that a lookup worker's port is bound to")
    worker_hosts: Names | None = Field(
        default=None, description="names by which that port is asked, besides its address and localhost: `worker`"
    )
    worker_commit_interval_ms: int = Field(
        default=50, ge=1, description="longest life of a lookup query's output transaction under load"
    )
    worker_commit_records: int = Field(
        default=20_000, ge=1, description="records after which a lookup query commits before that"
    )
    worker_run_records: int = Field(
        default=20_000, ge=1, description="most records that a lookup query fetches at once"
    )
    worker_session_timeout_s: Seconds = Field(
        default=10, description="silence after which a lookup worker's partitions go to others"
    )
    source_wait_s: Seconds = Field(
        default=120, description="longest wait for a source that is away before a lookup query is started again"
    )

    files_dir: AbsolutePath | None = Field(
        default=None, description="folder of the files that statements may name; unset: `files` in data_dir"
    )
    backup_dir: AbsolutePath | None = Field(
        default=None, description="folder below which BACKUP VIEW and RESTORE VIEW name theirs; unset: any folder"
    )
    secrets_dir: AbsolutePath = Field(
        default=Path("/run/secrets"),
        description="mounted secrets: PASSWORD FILE, SSL_CA, SSL_CERT and SSL_KEY may name files directly in it",
    )
    source_hosts: str | None = Field(
        default=None, description="hosts that sources may be on, by commas; unset: any but link-local and its like"
    )
    source_max_bytes: int = Field(
        default=256 << 20, ge=1, description="largest file of FILE, and largest answer of HTTP, unpacked"
    )

    memo_ttl_s: Annotated[float, Field(ge=0)] = Field(
        default=0, description="how long a lookup query remembers an updating row after its last change; 0: forever"
    )

    python_functions: Literal["on", "off"] = Field(
        default="on", description="whether functions that users write in Python are made and run by this process"
    )

    @property
    def runs_python_functions(self) -> bool:
        return self.python_functions == "on"

    @property
    def broker_address(self) -> BrokerAddress | None:
        """Of the brokers that are named, or run in the local stack."""
        return None if self.brokers is None else BrokerAddress(self.brokers, self.kafka_security, self.schema_registry)

    def expect_brokers(self, process: str) -> BrokerAddress:
        """Raises StackError where they are not known to a ``process`` that cannot do without."""
        if self.broker_address is None:
            raise StackError("DOVETAIL_BROKERS is not set", where=process, fix="start it by: dovetail up")
        return self.broker_address

    @property
    def jars(self) -> Path:
        return self.jar_dir or self.data_dir / "jars"

    @property
    def log_dir(self) -> Path:
        return self.data_dir / "logs"

    @property
    def files(self) -> Path:
        return self.files_dir or self.data_dir / "files"

    @property
    def query_logs(self) -> Path:
        return self.log_dir / "queries"

    @property
    def checkpoints(self) -> str:
        """A folder, or the URL of an object store (``runtime.storage.places``)."""
        return self.checkpoint_dir or str(self.data_dir / "checkpoints")

    @property
    def local_copies(self) -> Path:
        return self.local_copy_dir or self.data_dir / "state-copy"

    @property
    def scratch(self) -> Path:
        return self.data_dir / "scratch"

    @property
    def catalog_address(self) -> str:
        """The SQLAlchemy URL; it may hold a password, so it is never logged."""
        if self.catalog_url is not None:
            return _with_password(self.catalog_url.get_secret_value(), self.catalog_password)
        return f"sqlite:///{self.data_dir / 'catalog.db'}"

    def as_environment(self) -> dict[str, str]:
        """The settings as variables, for a child process that must read the same ones."""
        return {f"DOVETAIL_{name.upper()}": _as_text(value) for name, value in self if value is not None}


def _with_password(url: str, password: SecretStr | None) -> str:
    """``user@host`` as ``user:password@host``, whatever characters the password has."""
    scheme, _, rest = url.partition("://")
    place, slash, path = rest.partition("/")
    if password is None or not place:
        return url
    login, _, host = place.rpartition("@")
    return f"{scheme}://{login.partition(':')[0]}:{quote(password.get_secret_value(), safe='')}@{host}{slash}{path}"


def _as_text(value: object) -> str:
    return value.get_secret_value() if isinstance(value, SecretStr) else str(value)


def read_settings(given: Mapping[str, object] | None = None, env_files: Sequence[Path] = ENV_FILES) -> Settings:
    """The settings of this process: those ``given`` stand before its environment, and that before ``env_files``, of
    which a later one stands before an earlier one.

    Raises StackError, which names the one that is wrong, or a file that others may have written; UnknownName for one
    that is given and does not exist.
    """
    for path in env_files:
        expect_own(path)
    for name in given or ():
        if name not in Settings.model_fields:
            raise UnknownName(f"there is no setting {name}", fix=suggestion(name, Settings.model_fields))
    try:
        settings = Settings(_env_file=tuple(env_files), **(given or {}))  # type: ignore[arg-type, call-arg]
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        name = f"DOVETAIL_{'_'.join(str(part) for part in first['loc']).upper()}"
        raise StackError(f"setting {name}: {first['msg']}", fix=f"correct or unset {name}") from None
    # What contradicts itself is said now, and not when the first client is made.
    _ = settings.kafka_security
    return settings
