"""Settings of Spark that are handed through, and those that are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.changelog.errors import StackError
from dovetail.runtime.storage.spark_conf import DECIDED, read_conf


def test_pairs_and_files_are_read_and_of_two_the_later_one_stands(tmp_path: Path) -> None:
    file = tmp_path / "cluster.conf"
    file.write_text(
        "# what all runners have\n\nspark.executor.memory  4g\nspark.cores.max=8\n"
        "spark.executor.extraJavaOptions: -Da=1 -Db=2\n"
    )

    read = read_conf(f"spark.cores.max=2 {file} spark.executor.memory=1g 'spark.ui.reverseProxyUrl=http://a b=c'")

    assert read == {
        "spark.cores.max": "8",
        "spark.executor.memory": "1g",
        "spark.executor.extraJavaOptions": "-Da=1 -Db=2",
        "spark.ui.reverseProxyUrl": "http://a b=c",
    }


def test_nothing_given_is_nothing_set() -> None:
    assert read_conf("") == {}


@pytest.mark.parametrize("key", DECIDED)
def test_what_dovetail_decides_is_refused_with_what_to_do_instead(key: str, tmp_path: Path) -> None:
    file = tmp_path / "own.conf"
    file.write_text(f"{key} other\n")
    for given in (f"{key}=other", str(file)):
        with pytest.raises(StackError, match=f"{key} is set by Dovetail") as refused:
            read_conf(given)
        assert (refused.value.where, refused.value.fix) == ("DOVETAIL_SPARK_CONF", DECIDED[key])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("/no/such/file", '"/no/such/file" is neither spark.key=value nor a file that can be read'),
        ("executor.memory=1g", '"executor.memory=1g" is neither spark.key=value nor a file'),
        ("spark.a='1", "No closing quotation"),
    ],
)
def test_what_is_no_setting_is_refused(given: str, said: str) -> None:
    with pytest.raises(StackError, match=said) as refused:
        read_conf(given)
    assert refused.value.fix


def test_a_line_of_a_file_that_is_no_setting_is_named(tmp_path: Path) -> None:
    file = tmp_path / "own.conf"
    file.write_text("spark.a 1\nhello\n")
    with pytest.raises(StackError, match='"hello" is no setting of Spark') as refused:
        read_conf(str(file))
    assert refused.value.where == f"{file}, line 2"
