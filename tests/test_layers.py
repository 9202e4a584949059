"""A layer imports only what its row of the table allows; read from the source, so imports inside functions count."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.paths import ROOT


@dataclass(frozen=True)
class Layer:
    """What a layer may import: other layers, and libraries. ``pure``: no clock, no chance, no network, no process."""

    layers: frozenset[str]
    libraries: frozenset[str] | None
    pure: bool = False


def layer(layers: str, libraries: str | None, *, pure: bool = False) -> Layer:
    return Layer(frozenset(layers.split()), None if libraries is None else frozenset(libraries.split()), pure)


LAYERS = {
    "changelog": layer("", "fastavro google numpy orjson polars pyarrow", pure=True),
    "broker": layer("changelog", "confluent_kafka fastavro google grpc_tools httpx numpy orjson pyarrow"),
    "joins": layer("changelog", "duckdb numpy pyarrow", pure=True),
    "sql": layer("changelog joins", "duckdb numpy pyarrow sqlalchemy sqlglot", pure=True),
    "runtime": layer(
        "broker changelog sql", "aiohttp prometheus_client psutil pyarrow pydantic pydantic_settings structlog"
    ),
    "dictionaries": layer("changelog", None),
    "enrichment": layer("changelog dictionaries joins sql", "numpy orjson pyarrow", pure=True),
    "spark_jobs": layer(
        "broker changelog dictionaries enrichment joins runtime sql",
        "numpy pandas polars prometheus_client py4j pyarrow pyspark",
    ),
    "services": layer("broker changelog dictionaries enrichment joins runtime sql", None),
    "dovetail": layer("changelog runtime services sql", "IPython pandas polars pyarrow sqlglot"),
}
OWNERS = {"confluent_kafka": "broker"}
"""A library that one layer encloses, also towards layers that may use any other."""
IMPURE_MODULES = frozenset({"asyncio", "random", "secrets", "socket", "subprocess", "time", "uuid"})
CLOCK_READS = frozenset({"now", "utcnow", "today"})
PRESENT = [name for name in LAYERS if (ROOT / name).is_dir()]


def sources(name: str) -> list[Path]:
    return sorted((ROOT / name).rglob("*.py"))


def imports(tree: ast.AST) -> Iterator[str]:
    """The layers and libraries that a module imports from. ``dovetail`` is the layer of the Python API."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (_origin(alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            names = (
                [f"{node.module}.{alias.name}" for alias in node.names] if node.module == "dovetail" else [node.module]
            )
            yield from map(_origin, names)


def _origin(module: str) -> str:
    package, _, rest = module.partition(".")
    layer = rest.partition(".")[0]
    return layer if package == "dovetail" and layer in LAYERS else package


def beside_the_package(tree: ast.AST) -> list[str]:
    """The layers that a module imports under names of their own, which are there in a checkout alone."""
    plain = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    inner = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level == 0]
    return [name for name in (*plain, *inner) if name.partition(".")[0] in LAYERS.keys() - {"dovetail"}]


def refused(name: str, imported: str) -> bool:
    rules = LAYERS[name]
    if imported == name or imported in rules.layers:
        return False
    if imported in LAYERS or imported in ("tests", "benchmarks"):
        return True
    if OWNERS.get(imported, name) != name:
        return True
    if imported in sys.stdlib_module_names:
        return rules.pure and imported in IMPURE_MODULES
    return rules.libraries is not None and imported not in rules.libraries


@pytest.mark.parametrize("name", [*PRESENT, "tests", "benchmarks"])
def test_layers_are_imported_from_the_package(name: str) -> None:
    assert [str(path) for path in sources(name) if beside_the_package(ast.parse(path.read_text()))] == []


def test_an_import_beside_the_package_is_seen() -> None:
    code = "import sql, runtime.settings\nfrom services.jars import LOCK_FILE\nfrom dovetail.sql import plan"
    assert beside_the_package(ast.parse(code)) == ["sql", "runtime.settings", "services.jars"]


@pytest.mark.parametrize("name", PRESENT)
def test_a_layer_imports_only_what_its_row_allows(name: str) -> None:
    found = [
        f"{path.relative_to(ROOT)} imports {imported}"
        for path in sources(name)
        for imported in imports(ast.parse(path.read_text()))
        if refused(name, imported)
    ]
    assert found == []


@pytest.mark.parametrize("name", [name for name in PRESENT if LAYERS[name].pure])
def test_a_pure_layer_reads_no_clock(name: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno} calls {ast.unparse(node.func)}"
        for path in sources(name)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CLOCK_READS
    ]
    assert found == []


def test_the_folders_with_code_are_the_layers() -> None:
    known = {*LAYERS, "tests", "benchmarks", "examples", "deploy", "docs"}
    with_code = {path.name for path in ROOT.iterdir() if path.is_dir() and (path / "__init__.py").exists()}
    assert with_code <= known


@pytest.mark.parametrize(
    ("name", "source", "expected"),
    [
        ("changelog", "import time", ["time"]),
        ("joins", "def f():\n    from pyspark.sql import Row", ["pyspark"]),
        ("sql", "from dovetail.spark_jobs.runner.spark_session import open_session", ["spark_jobs"]),
        ("spark_jobs", "import time, dovetail.sql.plan.nodes", []),
        ("services", "from dovetail.spark_jobs.runner.query import RunningQuery", ["spark_jobs"]),
        ("services", "from confluent_kafka import KafkaException", ["confluent_kafka"]),
        ("broker", "from confluent_kafka import KafkaException", []),
    ],
)
def test_the_rules_see_what_they_forbid(name: str, source: str, expected: list[str]) -> None:
    assert [imported for imported in imports(ast.parse(source)) if refused(name, imported)] == expected
