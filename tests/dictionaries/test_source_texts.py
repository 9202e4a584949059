"""Files and web services: formats, changes, faults."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from dovetail.changelog.errors import ServiceUnavailable, SourceRefused
from dovetail.changelog.lookup import Row
from dovetail.changelog.schema import Column
from dovetail.dictionaries.check import define
from dovetail.dictionaries.definition.definition import LayoutSpec, SourceSpec
from dovetail.dictionaries.definition.options import Parameter
from dovetail.dictionaries.open import Checkable, open_source
from dovetail.dictionaries.outside.outside import Outside
from dovetail.dictionaries.resources import Resources
from tests.dictionaries.backends import EMBEDDED, WebService

COLUMNS = (Column("id", pa.int64()), Column("name", pa.string()), Column("n", pa.int32()))


def opened(kind: str, folder: Path, **parameters: Parameter) -> Checkable:
    definition = define("d", COLUMNS, ["id"], SourceSpec(kind, parameters), LayoutSpec("direct"))
    return open_source(definition, Resources(None, Outside(folder)))


@pytest.mark.parametrize(
    ("form", "text", "expected"),
    [
        ("CSV", "1,a,5\n2,,\n", [(1, "a", 5), (2, "", None)]),
        ("CSV", 'n,id,other,name\n5,1,x,"a ""b"", c"\n,2,y,\\N\n', [(1, 'a "b", c', 5), (2, None, None)]),
        ("JSON", '[{"id":1,"name":"a","n":5},{"id":2}]', [(1, "a", 5), (2, None, None)]),
        ("JSON", '{"meta":[],"data":[{"id":"1","name":"a","n":5,"x":0}]}', [(1, "a", 5)]),
        ("JSONEachRow", '{"id":1,"name":"a","n":5}\n\n', [(1, "a", 5)]),
        ("CSV", "", []),
        ("JSON", "", []),
    ],
)
def test_formats(tmp_path: Path, form: str, text: str, expected: list[Row]) -> None:
    (tmp_path / "rows").write_text(text)
    source = opened("file", tmp_path, path="rows", format=form)
    source.check()
    assert [row for piece in source.load() for row in piece] == expected


def test_a_file_that_changed_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("1,a,5\n")
    source = opened("file", tmp_path, path="rows.csv")
    assert source.fetch(["id"], [1]) == {1: ((1, "a", 5),)}
    path.write_text("1,b,5\n")
    os.utime(path, ns=(1, 1))
    assert source.fetch(["id"], [1]) == {1: ((1, "b", 5),)}


@pytest.mark.parametrize(
    ("text", "said"), [(None, "cannot be read"), ("{", "no jsoneachrow"), ("[1]", "no jsoneachrow")]
)
def test_a_file_that_cannot_be_used(tmp_path: Path, text: str | None, said: str) -> None:
    if text is not None:
        (tmp_path / "rows.ndjson").write_text(text)
    with pytest.raises(SourceRefused, match=said):
        opened("file", tmp_path, path="rows.ndjson").check()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[WebService]:
    with EMBEDDED["http post"](tmp_path) as running:
        assert isinstance(running, WebService)
        running.put("goods", COLUMNS, ["id"], [(1, "a", 5)])
        yield running


def test_a_web_service_that_refuses(service: WebService, tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{service.port}/rows?token=abc"
    with pytest.raises(SourceRefused, match="401") as caught:
        opened("http", tmp_path, url=url).check()
    assert "abc" not in str(caught.value)
    with pytest.raises(SourceRefused, match="404"):
        opened("http", tmp_path, url=f"http://u:s3cret@127.0.0.1:{service.port}/none").check()


def test_a_web_service_that_does_not_answer(tmp_path: Path) -> None:
    with pytest.raises(ServiceUnavailable) as caught:
        opened("http", tmp_path, url="http://u:s3cret@127.0.0.1:1/rows").check()
    assert "s3cret" not in str(caught.value)
    assert "127.0.0.1:1" in caught.value.where


@pytest.mark.parametrize("kind", ["mysql", "clickhouse", "postgresql"])
def test_a_database_that_is_away_did_not_do_what_it_was_asked_for(tmp_path: Path, kind: str) -> None:
    parameters: dict[str, Parameter] = {"host": "127.0.0.1", "port": 1, "user": "u", "db": "d", "table": "t"}
    source = opened(kind, tmp_path, **parameters)
    with pytest.raises(ServiceUnavailable) as away:
        source.check()
    assert " did not tell its columns: " in away.value.what
