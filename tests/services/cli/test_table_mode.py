"""The current rows of a changelog, on a terminal, while it goes on."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prompt_toolkit.application import create_app_session
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from rich.console import Console as RichConsole
from rich.console import ConsoleDimensions
from rich.text import Text

from dovetail.broker.address import BrokerAddress
from dovetail.broker.reader import RECORDS
from dovetail.changelog.changes import DELTA
from dovetail.changelog.schema import ARRIVAL, WIRE_DELTA, Column, Kind, StreamSchema
from dovetail.changelog.topic_content import content
from dovetail.services.cli.console import Console, is_finished, mode_of
from dovetail.services.cli.following.current_rows import CurrentRows
from dovetail.services.cli.following.followed_rows import followed
from dovetail.services.cli.following.rows_on_screen import RowsOnScreen, in_order
from dovetail.services.cli.row_format import Format, Mode
from dovetail.services.cli.show import Screen
from dovetail.services.session import Session
from dovetail.services.session.select import TopicRows
from dovetail.services.stack.temporary import temporary_settings
from dovetail.sql.catalog import Catalog
from dovetail.sql.planner import stream_of
from tests.sql.planner import Planner

SHAPE = pa.schema(
    [
        pa.field("k", pa.string(), nullable=False),
        pa.field("v", pa.float64()),
        pa.field("a", pa.list_(pa.int64())),
        pa.field("n", pa.int64()),
        pa.field(WIRE_DELTA, pa.int64(), nullable=False),
    ]
)
COLUMNS = tuple(Column(field.name, field.type) for field in SHAPE if field.name != WIRE_DELTA)
KINDS = {
    "counted": StreamSchema("x", COLUMNS, Kind.CHANGELOG),
    "keyed": StreamSchema("x", COLUMNS, Kind.UPSERT, ("k",)),
    "keyed changelog": StreamSchema("x", COLUMNS, Kind.CHANGELOG_KV, ("k",)),
    "versioned": StreamSchema("x", COLUMNS, Kind.UPSERT, ("k",), version="n"),
}
NASTY = st.tuples(
    st.sampled_from(["", "a", "A", "é", "a\nb", "[bold]"]),
    st.sampled_from([None, 0.0, 1.5, float("nan"), float("inf")]),
    st.sampled_from([None, [], [1, None]]),
    st.integers(0, 3),
    st.sampled_from([1, 1, -1]),
)


@pytest.fixture(autouse=True)
def _cursor_that_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")


def table(rows: list[tuple[object, ...]]) -> pa.Table:
    return pa.table([pa.array([row[at] for row in rows], field.type) for at, field in enumerate(SHAPE)], schema=SHAPE)


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None)
@given(rows=st.lists(NASTY, max_size=12), cuts=st.lists(st.integers(0, 12), max_size=3))
def test_any_cutting_adds_up_to_what_the_topic_holds(
    kind: str, rows: list[tuple[object, ...]], cuts: list[int]
) -> None:
    whole, current = table(rows), CurrentRows(SHAPE, KINDS[kind], most=3)
    for begin, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(rows)], strict=True):
        current.add(whole.slice(begin, max(0, end - begin)))
        current.newest(1)
    decoded = whole.drop_columns([WIRE_DELTA]).append_column(ARRIVAL, pa.array(range(len(rows)), pa.int64()))
    wanted = content(KINDS[kind], decoded.append_column(DELTA, whole.column(WIRE_DELTA)))
    assert repr(current.newest(100).to_pylist()) == repr(wanted.to_pylist())
    assert (current.count, current.changes) == (wanted.num_rows, len(rows))


@pytest.mark.parametrize(
    ("ddl", "rows"),
    [
        ("CREATE MUTABLE STREAM s (k int, n int) PRIMARY KEY k", [{"k": 1, "n": 7}]),
        ("CREATE STREAM s (k int, n int)", [{"k": 1, "n": 5}, {"k": 1, "n": 7}]),
        ("CREATE STREAM s (k int, n int) SETTINGS mode = 'changelog'", [{"k": 1, "n": 5}, {"k": 1, "n": 7}]),
        ("CREATE TABLE s (k int, n int, PRIMARY KEY (k))", [{"k": 1, "n": 7}]),
    ],
)
def test_records_of_a_topic_add_up(ddl: str, rows: list[dict[str, object]]) -> None:
    topic = TopicRows(stream_of(Planner.of(ddl).catalog, "s"), BrokerAddress("nowhere"))
    current = CurrentRows(topic.schema, topic.stream, most=5)
    for offset, value in enumerate((b'{"k":1,"n":5,"_tp_delta":1}', b'{"k":1,"n":7,"_tp_delta":1}')):
        at = pa.scalar(0, RECORDS.field("timestamp").type)
        record = pa.table([[b'{"k":1}'], [value], [at.as_py()], [0], [offset]], schema=RECORDS)
        current.add(topic.decoded(record))
        current.newest(1)
    assert [{name: row[name] for name in ("k", "n")} for row in current.newest(5).to_pylist()] == rows


def test_of_rows_that_are_never_taken_back_the_last_are_kept() -> None:
    shape = pa.schema([("n", pa.int64())])
    current = CurrentRows(shape, None, most=5)
    for begin in range(0, 1_000, 7):
        current.add(pa.table({"n": pa.array(range(begin, begin + 7), pa.int64())}))
    assert current.newest(3)["n"].to_pylist() == [998, 999, 1_000]
    assert current.newest(100).num_rows == 5
    assert current.count == 1_001


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def a_screen(height: int = 12) -> tuple[Screen, Terminal]:
    output = Terminal()
    screen = Screen(output=output, mode=Mode.TABLE)
    screen.console.size = ConsoleDimensions(60, height)
    return screen, output


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_rows_are_drawn_in_place_with_their_rate() -> None:
    screen, output = a_screen()
    clock = Clock()
    with RowsOnScreen(screen, SHAPE, KINDS["keyed"], clock=clock) as shown:
        clock.now_s += 2
        shown.add(table([("b", 1.0, None, 1, 1), ("a", 2.0, None, 1, 1), ("b", 3.0, None, 1, 1)]))
        clock.now_s += 3
        output.truncate(0)
        shown.add(SHAPE.empty_table())
        drawn = output.getvalue()
        assert "2 rows; 0.6 changes per second, 3 s since the last" in drawn
        assert drawn.index("│ a") < drawn.index("│ b")
        assert WIRE_DELTA not in drawn
        clock.now_s += 20
        shown.add(SHAPE.empty_table())
        assert "0.0 changes per second, 23 s since the last" in output.getvalue()
    assert shown.count == 3


@pytest.mark.parametrize("height", [1, 5, 12, 40])
def test_never_more_lines_than_the_terminal_has(height: int) -> None:
    screen, output = a_screen(height)
    rows: list[tuple[object, ...]] = [
        (f"{number:03}\n" * 3 + "x" * 200, 1.0, [number] * 50, 1, 1) for number in range(100)
    ]
    clock = Clock()
    with RowsOnScreen(screen, SHAPE, KINDS["counted"], clock=clock) as shown:
        clock.now_s += 1
        output.truncate(0)
        shown.add(table(rows))
        assert output.getvalue().count("\n") < height
        assert "100 rows, the last" in output.getvalue() or height < 7


def test_markup_in_a_value_is_text() -> None:
    screen, output = a_screen()
    with RowsOnScreen(screen, SHAPE, KINDS["counted"]) as shown:
        shown.add(table([("[bold]x[/]", 1.0, None, 1, 1)]))
    assert "[bold]x[/]" in output.getvalue()


def test_an_order_where_there_is_one() -> None:
    rows = pa.table({"a": pa.array([[2], [1]]), "s": ["y", "x"], "b": [True, False], "n": pa.nulls(2)})
    assert in_order(rows)["s"].to_pylist() == ["x", "y"]
    assert in_order(rows.select(["a"])) == rows.select(["a"])


def test_the_console_is_told_its_mode(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    catalog = Catalog.open(f"sqlite:///{tmp_path / 'catalog.db'}")
    said = StringIO()
    with (
        Session(temporary_settings(tmp_path), catalog, BrokerAddress("127.0.0.1:1")) as session,
        create_pipe_input() as typed,
        create_app_session(input=typed, output=DummyOutput()),
    ):
        screen = Screen(output=Terminal())
        screen.notes = RichConsole(file=said, width=100)
        typed.send_text("\\mode\r\\mode table\r\\mode tabel\r\\q\r")
        Console(session, screen).run()
    assert screen.mode is Mode.TABLE
    _, *lines = said.getvalue().splitlines()
    assert lines == [
        "changelog: each change of a SELECT or PRINT, in its order",
        "table: the current rows of a SELECT or PRINT, in place",
        'error: there is no mode "tabel"',
        "  where: \\mode",
        '  fix:   did you mean "table"? one of: changelog, table',
    ]


class Tail:
    schema, stream = SHAPE, KINDS["counted"]

    def batches(self, *, until_idle: bool) -> object:
        raise NotImplementedError


def test_changes_have_their_sign_and_a_terminal_alone_has_a_table() -> None:
    changes = table([("a", 1.0, None, 1, 1), ("a", 1.0, None, 1, -1)])
    for screen, wanted in (
        (Screen(output=Terminal()), ["  k", "  -", "+ a", "- a"]),
        (Screen(output=StringIO(), mode=Mode.TABLE), ["k  ", "-  ", "a  ", "a  "]),
        (Screen(Format.JSON, Terminal(), Mode.TABLE), ['{"k', '{"k']),
    ):
        with followed(screen, Tail()) as shown:  # type: ignore[arg-type]
            shown.add(changes)
        assert isinstance(screen.output, StringIO)
        assert [line[:3] for line in Text.from_ansi(screen.output.getvalue()).plain.splitlines()] == wanted


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("\\mode table", "table"),
        ("\\MODE  Changelog ;", "changelog"),
        ("\\mode", ""),
        ("\\modes", None),
        ("mode", None),
    ],
)
def test_the_command_of_the_console(text: str, mode: str | None) -> None:
    assert mode_of(text) == mode
    assert is_finished(Document(text)) is text.lstrip().startswith("\\")
