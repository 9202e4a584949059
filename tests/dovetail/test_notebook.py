"""What a notebook shows: tables in two forms, live ones that hold no more than they show, errors as text."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.error import StdinNotImplementedError
from IPython.core.magic_arguments import MagicArgumentParser

from dovetail.changelog.errors import SqlError, UnknownName, Unsupported
from dovetail.notebook.failures import CellFailed, as_cell_failures
from dovetail.notebook.live_table import LiveTable
from dovetail.notebook.options import cell_options, changes_options, settings_of
from dovetail.notebook.tables import Bundle, answer_of, lines_of, table_of
from dovetail.notebook.workplace import confirmed
from tests.docs.pages import Page

VALUES = st.one_of(st.none(), st.text(), st.sampled_from(["<b>", "</td>", "a\nb", "&amp;", "'\"", "\x00", "NULL"]))


@dataclass
class Pictures:
    """What a notebook was given to show, the last one last."""

    seen: list[Bundle] = field(default_factory=list)

    def show(self, bundle: Bundle) -> Pictures:
        self.seen.append(bundle)
        return self

    def update(self, obj: Bundle, *, raw: bool) -> None:
        assert raw
        self.seen.append(obj)


@given(st.lists(VALUES, min_size=1, max_size=4), st.text())
def test_whatever_a_value_is_it_is_shown_and_is_no_markup(values: list[str | None], name: str) -> None:
    shown = table_of(pa.table({name: pa.array(values, pa.string())}), "a note")
    cells = re.findall(r"<td[^>]*>(.*?)</td>", shown["text/html"], re.DOTALL)
    assert [html.unescape(cell) for cell in cells] == ["NULL" if value is None else value for value in values]
    assert "<b>" not in shown["text/html"].replace("<tbody>", "")


def test_so_many_rows_are_shown_and_all_are_counted() -> None:
    shown = answer_of(pa.table({"id": list(range(1_000))}), 3, "of today")
    assert shown["text/plain"] == "id\n--\n 0\n 1\n 2\n1,000 rows, the first 3 are shown, of today"
    assert shown["text/html"].count("<tr style") == 3
    assert lines_of("a < b")["text/html"] == "<pre>a &lt; b</pre>"


def changes(*sizes: int) -> Iterator[pa.Table]:
    number = 0
    for size in sizes:
        yield pa.table({"id": pa.array(range(number, number + size), pa.int64()), "_tp_delta": [1] * size})
        number += size


SCHEMA = pa.schema([("id", pa.int64()), ("_tp_delta", pa.int64())])


@pytest.mark.parametrize("sizes", [(7,), (1, 0, 1, 5), (3, 4, 0, 0), (1,) * 7])
def test_a_live_table_holds_the_last_rows(sizes: tuple[int, ...]) -> None:
    pictures = Pictures()
    LiveTable(SCHEMA, 3, pictures.show).follow(changes(*sizes))
    assert pictures.seen[0]["text/plain"].endswith("0 changes; running; interrupt the kernel to end it")
    assert pictures.seen[-1]["text/plain"].splitlines()[2:] == [
        *(f" {number}          1" for number in (4, 5, 6)),
        "7 changes, the last 3 are shown; ended",
    ]


@pytest.mark.parametrize(("end", "shown_as"), [(KeyboardInterrupt, "interrupted"), (SqlError, "failed")])
def test_it_says_how_it_has_ended(end: type[BaseException], shown_as: str) -> None:
    def broken() -> Iterator[pa.Table]:
        yield from changes(1)
        raise end("stop")

    pictures = Pictures()
    live = LiveTable(SCHEMA, 3, pictures.show)
    if end is KeyboardInterrupt:
        live.follow(broken())
    else:
        with pytest.raises(end):
            live.follow(broken())
    assert pictures.seen[-1]["text/plain"].endswith(f"1 change; {shown_as}")


def test_an_error_is_text_with_its_place_and_no_secret() -> None:
    with pytest.raises(CellFailed) as failed, as_cell_failures():
        raise UnknownName("there is no x in PASSWORD 'secret'", where="line 1", fix="write y")
    [shown] = failed.value._render_traceback_()
    assert shown.splitlines()[1:] == ["  where: line 1", "  fix:   write y"]
    assert "secret" not in shown
    with pytest.raises(CellFailed, match="no room"), as_cell_failures():
        raise OSError(28, "no room", "/a/folder")
    with pytest.raises(ZeroDivisionError), as_cell_failures():
        _ = 1 // 0


@pytest.mark.parametrize("options", [cell_options(), changes_options()], ids=lambda options: options.prog)
def test_the_page_has_every_option(options: MagicArgumentParser) -> None:
    [row] = [
        row for row in Page.of("docs/python.md").rows("magic", "what it does", "options") if options.prog in row[0]
    ]
    declared = set(re.findall(r"--[a-z-]+", options.format_help()))
    assert set(re.findall(r"--[a-z-]+", row[2])) == declared


def test_what_the_line_says() -> None:
    assert settings_of("brokers=k:9092 data_dir='/a folder' x=a=b") == {
        "brokers": "k:9092",
        "data_dir": "/a folder",
        "x": "a=b",
    }
    for wrong in ("SHOW STREAMS", "brokers", "x='"):
        with pytest.raises(SqlError):
            settings_of(wrong)
    assert vars(cell_options().parse_args(["--into", "x"])) == {"into": "x", "rows": 50, "until_idle": False}
    assert changes_options().parse_args(["v", "-b", "-n", "3"]).limit == 3


@pytest.mark.parametrize(("answer", "agrees"), [("y", True), ("Yes ", True), ("", False), ("no", False)])
def test_what_goes_with_a_drop_is_asked(answer: str, agrees: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builtins.input", lambda question: answer if question.endswith("Continue? [y/N] ") else "")
    assert confirmed("DROP STREAM s CASCADE also drops view v") is agrees


@pytest.mark.parametrize("fault", [StdinNotImplementedError, EOFError, OSError])
def test_where_no_one_can_be_asked_it_is_refused(fault: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(_question: str) -> str:
        raise fault

    monkeypatch.setattr("builtins.input", silent)
    with pytest.raises(Unsupported, match="also drops view v"):
        confirmed("DROP STREAM s CASCADE also drops view v")
