"""Connections to DuckDB are made in one place, and can do nothing besides computing."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import mkdtemp
from threading import Thread

import duckdb
import pyarrow as pa
import pytest

from dovetail.sql.expressions.engine_calls.bounds import Bounds, bound
from dovetail.sql.expressions.engine_calls.duckdb_connection import connection
from tests.paths import ROOT
from tests.test_layers import PRESENT, sources

MAKER = ROOT / "sql" / "expressions" / "engine_calls" / "duckdb_connection.py"


def connections_made(source: str) -> list[str]:
    """The ways in which a module reaches what DuckDB makes or keeps connections with."""
    tree = ast.parse(source)
    return [*_imported(tree), *_used(tree), *_by_name(tree)]


def _is_harmless(name: str) -> bool:
    """A type: of errors, or of the connections themselves."""
    found = getattr(duckdb, name, None)
    return isinstance(found, type) and (issubclass(found, Exception) or found is duckdb.DuckDBPyConnection)


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in ("duckdb", "_duckdb"):
            yield from (alias.name for alias in node.names if not _is_harmless(alias.name))
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("_duckdb"))


def _used(tree: ast.AST) -> Iterator[str]:
    names = {
        alias.asname or "duckdb"
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name.split(".")[0] == "duckdb"
    }
    harmless = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and _is_harmless(node.attr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in names and id(node) not in harmless:
            yield f"{node.id} in line {node.lineno}"


def _by_name(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("import_module", "__import__"):
            yield from (ast.unparse(argument) for argument in node.args if "duckdb" in ast.unparse(argument))


@pytest.mark.parametrize("layer", PRESENT)
def test_no_other_file_makes_a_connection(layer: str) -> None:
    texts = {path: path.read_text() for path in sources(layer) if path != MAKER}
    made = {path: connections_made(text) for path, text in texts.items() if "duckdb" in text}
    assert {str(path): ways for path, ways in made.items() if ways} == {}


@pytest.mark.parametrize(
    "source",
    [
        "import duckdb\nduckdb.connect()",
        "import duckdb as d\nd.connect(':memory:')",
        "import duckdb\nmake = duckdb.connect",
        "import duckdb\nengine = duckdb\nengine.connect()",
        "import duckdb\ngetattr(duckdb, 'connect')()",
        "def f():\n    import duckdb\n    return duckdb.sql('SELECT 1')",
        "import duckdb\nduckdb.query('SELECT 1')",
        "import duckdb\nduckdb.execute('SELECT 1')",
        "import duckdb\nduckdb.default_connection()",
        "from duckdb import connect",
        "from duckdb import connect as made",
        "from duckdb import sql, query",
        "from duckdb import *",
        "import _duckdb\n_duckdb.connect()",
        "import importlib\nimportlib.import_module('duckdb').connect()",
        "__import__('duckdb').connect()",
    ],
)
def test_every_spelling_of_one_is_seen(source: str) -> None:
    assert connections_made(source) != []


def test_its_errors_and_types_may_be_named() -> None:
    assert connections_made("import duckdb\ntry: ...\nexcept duckdb.Error: ...\nx: duckdb.DuckDBPyConnection") == []


def test_the_one_file_makes_one() -> None:
    assert connections_made(MAKER.read_text()) != []


Connected = Callable[[Bounds], duckdb.DuckDBPyConnection]


@pytest.fixture
def connected() -> Iterator[Connected]:
    """The connection of a new thread, within bounds."""
    made: list[duckdb.DuckDBPyConnection] = []

    def within(bounds: Bounds) -> duckdb.DuckDBPyConnection:
        bound(bounds)
        thread = Thread(target=lambda: made.append(connection()))
        thread.start()
        thread.join()
        return made[-1]

    yield within
    bound(Bounds())
    for one in made:
        one.close()


@pytest.fixture(params=["no spilling", "spilling"])
def shut_in(request: pytest.FixtureRequest, connected: Connected, tmp_path: Path) -> duckdb.DuckDBPyConnection:
    return connected(Bounds(spill_folder=(lambda: _new_folder(tmp_path)) if request.param == "spilling" else None))


def _new_folder(within: Path) -> Path:
    return Path(mkdtemp(dir=within))


@pytest.mark.parametrize(
    "statement",
    [
        *(f'SELECT * FROM "{{folder}}/x".{kind} AS t' for kind in ("csv", "tsv", "json", "jsonl", "ndjson", "parquet")),
        'SELECT * FROM "{folder}/x.csv"',
        "SELECT * FROM '{folder}/x.csv'",
        'SELECT t.filename FROM "{folder}/*".csv AS t',
        'SELECT a FROM "/etc/x".conf AS t',
        'SELECT name FROM "{folder}/catalog".db AS t',
        'SELECT column0 FROM "http://127.0.0.1:9/x".csv AS t',
        "SELECT * FROM read_csv('{folder}/x.csv')",
        "SELECT * FROM read_text('{folder}/x.csv')",
        "SELECT * FROM read_blob('{folder}/x.csv')",
        "SELECT * FROM read_json('{folder}/x.csv')",
        "SELECT * FROM read_parquet('{folder}/x.csv')",
        "SELECT * FROM read_csv('{spill}/../x.csv')",
        "SELECT * FROM glob('{folder}/*')",
        "SELECT * FROM sniff_csv('{folder}/x.csv')",
        "SELECT * FROM read_text('https://127.0.0.1:9/x')",
        "SELECT * FROM read_csv('s3://bucket/x.csv')",
        "COPY (SELECT 1) TO '{folder}/y.csv'",
        "COPY t FROM '{folder}/x.csv'",
        "EXPORT DATABASE '{folder}/y'",
        "IMPORT DATABASE '{folder}'",
        "ATTACH '{folder}/y.db'",
        "ATTACH '{folder}/catalog.db' (TYPE sqlite)",
        "INSTALL httpfs",
        "INSTALL sqlite FROM community",
        "LOAD httpfs",
        "LOAD '{folder}/x.duckdb_extension'",
        "CREATE SECRET (TYPE s3)",
        "CREATE PERSISTENT SECRET (TYPE http)",
        "SELECT * FROM sqlite_scan('{folder}/catalog.db', 't')",
        "SELECT * FROM variable_of_the_caller",
        "SELECT getenv('HOME')",
    ],
)
def test_it_opens_no_file_no_address_and_no_extension(
    shut_in: duckdb.DuckDBPyConnection, statement: str, tmp_path: Path
) -> None:
    (tmp_path / "x.csv").write_text("a\n1\n")
    variable_of_the_caller = pa.table({"a": [1]})
    spill = _setting(shut_in, "temp_directory") or str(tmp_path)
    with pytest.raises(duckdb.Error):
        shut_in.execute(statement.format(folder=tmp_path, spill=spill)).fetchall()
    assert variable_of_the_caller.num_rows == 1
    assert not (tmp_path / "y.csv").exists()


def _setting(session: duckdb.DuckDBPyConnection, name: str) -> str:
    found = session.execute("SELECT value FROM duckdb_settings() WHERE name = ?", [name]).fetchone()
    assert found is not None
    return str(found[0] or "")


def test_no_setting_can_be_changed_but_the_optimizers(shut_in: duckdb.DuckDBPyConnection) -> None:
    names = [str(name) for (name,) in shut_in.execute("SELECT name FROM duckdb_settings()").fetchall()]
    changed = [name for name in names if _takes(shut_in, f"SET {name} = DEFAULT") or _takes(shut_in, f"RESET {name}")]
    assert set(changed) <= {"disabled_optimizers", "schema", "search_path"}
    refused = ("SET enable_external_access = true", "PRAGMA enable_profiling", "CALL enable_logging()")
    assert [statement for statement in refused if _takes(shut_in, statement)] == []


def _takes(session: duckdb.DuckDBPyConnection, statement: str) -> bool:
    try:
        session.execute(statement)
    except duckdb.Error:
        return False
    return True


def test_what_it_computes_is_still_computed(shut_in: duckdb.DuckDBPyConnection) -> None:
    shut_in.register("t", pa.table({"j": ['{"a": 1}']}))
    row = shut_in.execute(
        "SELECT json_extract_string(j, '$.a'), timezone('Europe/Berlin', TIMESTAMPTZ '2020-01-01 00:00:00+00')::TEXT,"
        " current_setting('TimeZone') FROM t"
    ).fetchone()
    assert row == ("1", "2020-01-01 01:00:00", "UTC")


def test_memory_is_bounded(connected: Connected) -> None:
    session = connected(Bounds(memory_bytes=32 << 20, spill_folder=None))
    with pytest.raises(duckdb.OutOfMemoryException):
        session.execute("SELECT list(repeat('x', 1000) || range) FROM range(1000000)").fetchall()


def test_what_spills_is_bounded_and_lies_in_a_folder_of_its_own(connected: Connected, tmp_path: Path) -> None:
    few = connected(Bounds(32 << 20, lambda: _new_folder(tmp_path), spill_bytes=1 << 20))
    many = connected(Bounds(32 << 20, lambda: _new_folder(tmp_path), spill_bytes=1 << 30))
    kept = "CREATE TEMP TABLE kept AS SELECT repeat('x', 300) || hash(range) AS x FROM range(300000)"
    with pytest.raises(duckdb.OutOfMemoryException, match="max_temp_directory_size"):
        few.execute(kept)
    assert many.execute(kept).fetchone() == (300_000,)
    assert _setting(few, "temp_directory") != _setting(many, "temp_directory")
