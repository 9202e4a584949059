"""A Flink SQL job that reads what its topics hold and ends, run by the interpreter that has Flink.

Standard input: JSON of ``settings``, of the ``tables`` to be made and of the ``insert``. Prints ``submitted`` when the
statement is given, and ``done`` behind its last commit.
"""

from __future__ import annotations

import json
import sys

from pyflink.table import EnvironmentSettings, TableEnvironment  # type: ignore[import-not-found]


def main() -> None:
    wanted = json.load(sys.stdin)
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for name, value in wanted["settings"].items():
        tables.get_config().set(name, value)
    for statement in wanted["tables"]:
        tables.execute_sql(statement)
    print("submitted", flush=True)
    tables.execute_sql(wanted["insert"]).wait()
    print("done", flush=True)


if __name__ == "__main__":
    main()
