"""Variables that look like settings and are none: a misspelt one would leave its setting at the default without a word.

It is a warning and no refusal: a machine may have variables of a later release, and of another process of this one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from pydantic_settings import DotEnvSettingsSource

from dovetail.changelog.suggest import nearest
from dovetail.runtime.environment.statement_secrets import PREFIX
from dovetail.runtime.settings import ENV_FILES, Settings

_PREFIX = "DOVETAIL_"
AMONG_PROCESSES = frozenset({"READY_FILE", "SPARK_JARS", "STACK_RUN", "FORK_SERVER", "WORKER_PYTHON"})
"""What processes of Dovetail tell each other."""
OF_CONTAINERS = frozenset({
    *("MYSQL_PASSWORD", "MYSQL_ROOT_PASSWORD", "MYSQL_PORT", "PROMETHEUS_PORT", "GRAFANA_PORT", "GRAFANA_PASSWORD"),
    *("CLICKHOUSE_PASSWORD", "CLICKHOUSE_PORT", "CLICKHOUSE_HTTP_PORT"),
})  # fmt: skip
"""What docker-compose.yml reads from the same ``.env``."""


def warn_of_unknown(say: Callable[[str], object], env_files: Sequence[Path] = ENV_FILES) -> None:
    """``say`` gets a line for each variable of this process, or of its ``env_files``, that means nothing."""
    for line in unknown_variables({**_of_files(env_files), **os.environ}):
        say(line)


def unknown_variables(environment: Mapping[str, str | None]) -> Iterator[str]:
    """A line for each name that begins as settings do and is none, in order, with the nearest one that there is.

    Letter case says nothing, as it says nothing of settings; an empty variable is an unset one. Values are not told.
    """
    settings = {name.upper() for name in Settings.model_fields}
    known = settings | AMONG_PROCESSES | OF_CONTAINERS
    for name in sorted(environment):
        called = name.upper().removeprefix(_PREFIX)
        of_statements = name.upper().startswith(PREFIX)
        if not name.upper().startswith(_PREFIX) or called in known or of_statements or not environment[name]:
            continue
        meant = nearest(called, sorted(settings))
        hint = f"did you mean {_PREFIX}{meant}?" if meant else "docs/configuration.md lists them"
        yield f"{name} is no setting, and sets nothing: {hint}"


def _of_files(env_files: Sequence[Path]) -> dict[str, str | None]:
    return dict(DotEnvSettingsSource(Settings, env_file=tuple(env_files), case_sensitive=True).env_vars)
