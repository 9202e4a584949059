"""The command line, as a person and as a script run it."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dovetail.broker.address import BrokerAddress
from dovetail.runtime.settings import read_settings
from dovetail.services.cli.main import app
from dovetail.services.session import Session
from dovetail.services.stack import Stack

COMMANDS = ("up", "down", "status", "logs", "sql", "run", "tail", "replay", "verify", "dictionary", "demo", "version")
Dovetail = Callable[..., Result]


@pytest.fixture
def dovetail(stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dovetail:
    """Runs a command against the broker of the tests, with a catalog of its own."""
    monkeypatch.setenv("DOVETAIL_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("DOVETAIL_BROKERS", stack.endpoint("kafka"))
    monkeypatch.setenv("DOVETAIL_BROKER_TIMEOUT_S", "10")

    def invoke(*arguments: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(app, list(arguments), input=stdin)

    return invoke


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command: str) -> None:
    result = CliRunner().invoke(app, [command, "--help"], terminal_width=100)
    assert result.exit_code == 0
    assert f"dovetail {command}" in result.output


@pytest.mark.parametrize("verb", ["list", "show", "stats", "refresh", "drop"])
def test_every_verb_of_dictionaries_has_help_with_an_example(verb: str) -> None:
    result = CliRunner().invoke(app, ["dictionary", verb, "--help"], terminal_width=100)
    assert result.exit_code == 0
    assert f"dovetail dictionary {verb}" in result.output


@pytest.mark.services
def test_dictionaries_from_the_command_line(dovetail: Dovetail, tmp_path: Path) -> None:
    file = tmp_path / "shop.db"
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("CREATE TABLE products (id text PRIMARY KEY, name text)")
    ddl = (
        "CREATE DICTIONARY products (id string, name string) PRIMARY KEY id "
        f"SOURCE(SQLITE(PATH '{file}' TABLE 'products')) LAYOUT(DIRECT())"
    )
    assert dovetail("sql", "-c", ddl).exit_code == 0
    assert "products" in dovetail("dictionary", "list").stdout
    shown = dovetail("dictionary", "show", "products")
    assert "the source answers" in shown.stderr
    assert "NOT_LOADED" in dovetail("dictionary", "stats").stdout
    assert json.loads(dovetail("dictionary", "stats", "products", "-o", "json").stdout)["name"] == "products"
    assert dovetail("dictionary", "refresh", "products", "--key", "p1").exit_code == 0
    refused = dovetail("dictionary", "refresh", "products", "--all", "--prefix", "p")
    assert (refused.exit_code, "give --key, --prefix or --all alone" in refused.stderr) == (1, True)
    file.unlink()
    assert dovetail("dictionary", "show", "products").exit_code == 1
    assert dovetail("dictionary", "drop", "products").exit_code == 0
    assert dovetail("dictionary", "show", "products").exit_code == 1


def test_no_argument_lists_the_commands() -> None:
    listed = CliRunner().invoke(app, ["--help"]).output
    assert all(command in listed for command in COMMANDS)


def test_usage_errors_have_exit_code_2() -> None:
    assert CliRunner().invoke(app, ["tail"]).exit_code == 2
    assert CliRunner().invoke(app, ["run", "no-such-file.sql"]).exit_code == 2


def test_without_a_stack_it_says_how_to_start_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOVETAIL_DATA_DIR", str(tmp_path))
    monkeypatch.delenv("DOVETAIL_BROKERS", raising=False)
    result = CliRunner().invoke(app, ["sql", "-c", "SHOW STREAMS"])
    assert result.exit_code == 1
    assert "error: no stack is running" in result.stderr
    assert "fix:   dovetail up" in result.stderr
    assert CliRunner().invoke(app, ["logs", "kafka"]).exit_code == 1
    assert CliRunner().invoke(app, ["--version"]).output == CliRunner().invoke(app, ["version"]).output != ""
    assert "nothing was running" in CliRunner().invoke(app, ["down"]).stderr


def test_status_of_a_stack_that_is_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOVETAIL_DATA_DIR", str(tmp_path))
    result = CliRunner().invoke(app, ["status", "-o", "json"])
    assert result.exit_code == 1
    assert "no stack is running here; dovetail up starts one" in result.stderr
    assert {line["state"] for line in map(json.loads, result.stdout.splitlines())} == {"stopped"}


def test_a_wrong_setting_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOVETAIL_KAFKA_PORT", "many")
    result = CliRunner().invoke(app, ["status"])
    assert result.exit_code == 1
    assert "DOVETAIL_KAFKA_PORT" in result.stderr


@pytest.mark.services
def test_brokers_that_are_named_are_obeyed_beside_a_local_stack(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOVETAIL_DATA_DIR", str(stack.settings.data_dir))
    monkeypatch.setenv("DOVETAIL_BROKERS", "localhost:1")
    monkeypatch.setenv("DOVETAIL_BROKER_TIMEOUT_S", "0.5")
    result = CliRunner().invoke(app, ["sql", "-c", "CREATE STREAM elsewhere (id int64)"])
    assert result.exit_code == 1
    assert "Kafka does not answer within 0.5 s" in result.stderr
    monkeypatch.setenv("DOVETAIL_BROKERS", stack.endpoint("kafka").replace("127.0.0.1", "localhost"))
    with Session.open(read_settings()) as named:
        assert named.context.brokers == BrokerAddress(stack.endpoint("kafka").replace("127.0.0.1", "localhost"))
        assert "Spark runner is stopped" in named.context.runner_fault("spark")
    monkeypatch.setenv("DOVETAIL_BROKERS", "localhost:1")
    with Session.open(read_settings()) as far:
        assert "this session works with Kafka at localhost:1" in far.context.runner_fault("spark")


@pytest.mark.services
def test_cascade_of_a_script_is_refused_without_yes(dovetail: Dovetail) -> None:
    script = "CREATE STREAM cli_six (id int64); CREATE VIEW cli_seven AS SELECT id FROM cli_six"
    assert dovetail("sql", "-c", script).exit_code == 0
    refused = dovetail("sql", "-c", "DROP STREAM cli_six CASCADE")
    assert refused.exit_code == 1
    assert "error: DROP STREAM cli_six CASCADE also drops view cli_seven" in refused.stderr
    assert "--yes" in refused.stderr
    dropped = dovetail("sql", "--yes", "-c", "DROP STREAM cli_six CASCADE WITH DATA")
    assert dropped.exit_code == 0
    assert "dropped view cli_seven, stream cli_six; deleted with all records: cli_six" in dropped.stderr


@pytest.mark.services
def test_statements_of_an_option(dovetail: Dovetail) -> None:
    script = "CREATE STREAM cli_one (id int64, name string); INSERT INTO cli_one VALUES (1, 'a'), (20, NULL)"
    assert dovetail("sql", "-c", script).exit_code == 0
    result = dovetail("sql", "-c", "SELECT id, name FROM table(cli_one) ORDER BY id")
    assert result.stdout == "id  name\n--  ----\n 1  a\n20  NULL\n"
    assert "2 rows" in result.stderr
    as_json = dovetail("sql", "-o", "json", "-c", "SELECT id, name FROM table(cli_one) ORDER BY id")
    assert [json.loads(line) for line in as_json.stdout.splitlines()] == [
        {"id": 1, "name": "a"},
        {"id": 20, "name": None},
    ]
    assert dovetail("sql", "-c", "DROP STREAM cli_one WITH DATA").exit_code == 0


@pytest.mark.services
def test_statements_of_a_pipe_stop_at_the_first_that_fails(dovetail: Dovetail) -> None:
    result = dovetail(
        "sql", stdin="CREATE STREAM cli_two (id int64);\nSELECT x FROM table(cli_two);\nDROP STREAM cli_two;"
    )
    assert result.exit_code == 1
    assert "> CREATE STREAM cli_two (id int64)" in result.stderr
    assert "error: " in result.stderr
    assert "Traceback" not in result.stderr
    assert dovetail("sql", "-c", "DROP STREAM cli_two WITH DATA").exit_code == 0


@pytest.mark.services
def test_a_script_with_a_syntax_error_runs_nothing(dovetail: Dovetail, tmp_path: Path) -> None:
    script = tmp_path / "script.sql"
    script.write_text("CREATE STREAM cli_three (id int64);\nSELEC 1;")
    result = dovetail("run", str(script))
    assert result.exit_code == 1
    assert "line 2, column 1" in result.stderr
    assert "did you mean SELECT?" in result.stderr
    assert "cli_three" not in dovetail("sql", "-c", "SHOW STREAMS").stdout


@pytest.mark.services
def test_a_folder_is_run_by_name_and_checked_before(dovetail: Dovetail, tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    refused = dovetail("run", str(folder))
    assert (refused.exit_code, "no file of the folder ends with .sql" in refused.stderr) == (1, True)
    (folder / "1_orders.sql").write_text("CREATE STREAM cli_eight (id int64);")
    (folder / "2_ids.sql").write_text(
        "CREATE VIEW cli_nine AS SELECT id FROM cli_eight;\nSELECT * FROM table(cli_ten);"
    )
    checked = dovetail("run", "--dry-run", str(folder))
    assert checked.exit_code == 1
    assert checked.stderr.count("error: ") == 1
    assert f"{folder / '2_ids.sql'}, line 2, column 21" in checked.stderr
    assert dovetail("sql", "-c", "SHOW STREAMS").stdout.count("cli_eight") == 0
    (folder / "2_ids.sql").write_text("CREATE VIEW cli_nine AS SELECT id FROM cli_eight")
    checked = dovetail("run", "--dry-run", str(folder))
    assert (checked.exit_code, "2 statements checked, none was run" in checked.stderr) == (0, True)
    assert dovetail("run", str(folder)).exit_code == 0
    # What is there is not made again.
    again = dovetail("run", "--dry-run", str(folder))
    assert (again.exit_code, again.stderr.count("already")) == (1, 2)
    (folder / "3_broken.sql").write_text("SELEC 1")
    broken = dovetail("run", str(folder / "2_ids.sql"), str(folder / "3_broken.sql"))
    assert (broken.exit_code, "3_broken.sql, line 1" in broken.stderr) == (1, True)
    dovetail("sql", "-c", "DROP VIEW cli_nine; DROP STREAM cli_eight WITH DATA")


@pytest.mark.services
def test_passwords_show_neither_in_the_echo_nor_in_errors(dovetail: Dovetail, tmp_path: Path) -> None:
    script = tmp_path / "script.sql"
    script.write_text("CREATE EXTERNAL STREAM e (id int64) SETTINGS topic = 'none', password = 'hunter2';")
    result = dovetail("run", str(script))
    assert result.exit_code == 1
    assert "hunter2" not in result.output


@pytest.mark.services
def test_tail_of_a_stream_and_of_a_bare_topic(dovetail: Dovetail, topics: Callable[..., str]) -> None:
    dovetail("sql", "-c", "CREATE MUTABLE STREAM cli_four (k int, v string) PRIMARY KEY k SETTINGS shards = 1")
    dovetail("sql", "-c", "INSERT INTO cli_four VALUES (1, 'a'), (2, 'b'); DELETE FROM cli_four WHERE k = 1")
    followed = dovetail("tail", "cli_four", "--from-beginning", "--limit", "3")
    assert followed.exit_code == 0
    assert (
        followed.stdout.splitlines()
        == [
            "k  v  _tp_delta",
            "-  -  ---------",
            "1  a          1",
            "2  b          1",
            "k  v     _tp_delta",
            "-  ----  ---------",
            "1  NULL         -1",
        ]
        or followed.stdout.splitlines()[-1] == "1  NULL         -1"
    )
    external = topics("bare")
    dovetail(
        "sql",
        "-c",
        f"CREATE EXTERNAL STREAM x (a int64) SETTINGS topic = '{external}'; INSERT INTO x VALUES (7); DROP STREAM x",
    )
    raw = dovetail("tail", external, "-b", "-n", "1", "-o", "json")
    assert json.loads(raw.stdout)["value"] == '{"a":7}'
    missing = dovetail("tail", "cli_for")
    assert missing.exit_code == 1
    assert 'did you mean "cli_four"?' in missing.stderr
    dovetail("sql", "-c", "DROP STREAM cli_four WITH DATA")


@pytest.mark.services
def test_tail_ends_when_nobody_reads_it_any_more(dovetail: Dovetail, stack: Stack) -> None:
    dovetail("sql", "-c", "CREATE STREAM cli_eight (a int64); INSERT INTO cli_eight VALUES (1), (2)")
    argv = [sys.executable, "-m", "dovetail.services.cli.main", "tail", "cli_eight", "-b"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as tail:
        assert tail.stdout is not None
        assert tail.stderr is not None
        assert tail.stdout.readline() == "a\n"
        tail.stdout.close()
        # No row comes that it would fail to write.
        assert tail.wait(timeout=60) == 141
        assert "Broken pipe" not in tail.stderr.read()
    dovetail("sql", "-c", "DROP STREAM cli_eight WITH DATA")


@pytest.mark.services
def test_verify_wants_a_materialized_view(dovetail: Dovetail) -> None:
    dovetail("sql", "-c", "CREATE STREAM cli_five (id int64)")
    result = dovetail("verify", "cli_five")
    assert result.exit_code == 1
    assert '"cli_five" is not a materialized view' in result.stderr
    dovetail("sql", "-c", "DROP STREAM cli_five WITH DATA")


@pytest.mark.services
def test_a_view_that_no_batch_can_judge_is_undecided(dovetail: Dovetail, monkeypatch: pytest.MonkeyPatch) -> None:
    # Nothing runs the view.
    monkeypatch.setenv("DOVETAIL_START_TIMEOUT_S", "0.1")
    monkeypatch.setenv("DOVETAIL_STOP_TIMEOUT_S", "0.1")
    made = (
        "CREATE STREAM cli_six (id int64); CREATE MUTABLE STREAM cli_seven (id int64) PRIMARY KEY id;"
        "CREATE MATERIALIZED VIEW cli_once AS SELECT a.id AS id FROM cli_six AS a JOIN cli_seven AS b ON a.id = b.id"
    )
    dovetail("sql", "-c", made)
    result = dovetail("verify", "cli_once")
    assert "was joined once" in result.stderr
    assert result.exit_code == 3
    dovetail("sql", "-c", "DROP VIEW cli_once; DROP STREAM cli_six WITH DATA; DROP STREAM cli_seven WITH DATA")


def test_as_a_process_of_its_own(tmp_path: Path) -> None:
    environment = os.environ | {"DOVETAIL_DATA_DIR": str(tmp_path)}
    environment.pop("DOVETAIL_BROKERS", None)
    argv = [sys.executable, "-m", "dovetail.services.cli.main", "sql", "-c", "SHOW STREAMS"]
    ended = subprocess.run(argv, capture_output=True, text=True, env=environment, check=False)
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert ended.stderr.startswith("error: no stack is running")


@pytest.mark.usefixtures("dovetail")
def test_counts_of_rows_come_after_their_rows_in_one_pipe() -> None:
    """Which are on the other output, and both end in the log of a pipeline."""
    argv = [sys.executable, "-m", "dovetail.services.cli.main", "sql", "-c", "SELECT 1 AS a; SELECT 2 AS b"]
    ended = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert ended.stdout.splitlines() == ["a", "-", "1", "1 row", "b", "-", "2", "1 row"]


def test_a_statement_that_fails_is_told_with_its_file(dovetail: Dovetail, tmp_path: Path) -> None:
    first, second = tmp_path / "first.sql", tmp_path / "second.sql"
    first.write_text("SELECT 1 AS a")
    second.write_text("SELECT a FROM table(nowhere)")
    failed = dovetail("run", str(first), str(second))
    assert failed.exit_code == 1
    assert f"where: {second}, line 1, column 21" in failed.stderr
