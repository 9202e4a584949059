"""What is imported late, so that a command is quick, is imported at once where processes are forked."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys

from dovetail.dictionaries import open as opening
from dovetail.services.worker.supervisor.child_process import PRELOADED
from tests.paths import ROOT


def test_all_of_it_is_preloaded() -> None:
    tree = ast.parse(inspect.getsource(opening))
    inner = [node for function in ast.walk(tree) if isinstance(function, ast.FunctionDef) for node in function.body]
    imported = {node.module for body in inner for node in ast.walk(body) if isinstance(node, ast.ImportFrom)}
    assert imported == set(opening.ON_DEMAND) <= set(PRELOADED)


def test_a_command_that_needs_no_client_imports_none() -> None:
    clients = {"redis", "clickhouse_driver", "psycopg", "pymysql", "prompt_toolkit"}
    code = f"import sys, dovetail.services.cli.session_commands; print(*sorted({clients!r} & set(sys.modules)))"
    assert subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True).split() == []


def test_a_process_of_a_lookup_query_loads_nothing_to_make_its_app_or_to_compute() -> None:
    code = f"""
import importlib, sys
for module in {PRELOADED!r}:
    importlib.import_module(module)
import pyarrow as pa
from dovetail.services.worker.query.warm_up import make_an_app
from dovetail.sql.expressions.evaluate import engine_type
before = set(sys.modules)
make_an_app()
engine_type('"a" + 1', (("a", pa.int64()),), "here")
print(*[name for name in sys.modules.keys() - before if name.startswith(("faust", "pandas.core", "dovetail"))])
"""
    assert subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True).split() == []
