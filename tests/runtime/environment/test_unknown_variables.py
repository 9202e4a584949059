"""A variable that begins as settings do and is none is said with the nearest one, and nothing else is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dovetail
from dovetail.runtime.environment.unknown_variables import (
    AMONG_PROCESSES,
    OF_CONTAINERS,
    unknown_variables,
    warn_of_unknown,
)
from dovetail.runtime.settings import Settings
from dovetail.services.known_stacks import found_settings
from tests.docs.test_settings import AMONG_PROCESSES as ON_THE_PAGE
from tests.docs.test_settings import OF_THE_CONTAINERS
from tests.nasty import TEXTS

NAMES = sorted(name.upper() for name in Settings.model_fields)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("DOVETAIL_PACK_AFTER", "did you mean DOVETAIL_PACK_AFTER_S?"),
        ("DOVETAIL_BROKER", "did you mean DOVETAIL_BROKERS?"),
        ("dovetail_bucket", "did you mean DOVETAIL_BUCKETS?"),
        ("DOVETAIL_KAFKA_SASL_USER", "did you mean DOVETAIL_KAFKA_SASL_USERNAME?"),
        ("DOVETAIL_ZZZ", "docs/configuration.md lists them"),
    ],
)
def test_the_nearest_one_is_said(name: str, said: str) -> None:
    assert list(unknown_variables({name: "x"})) == [f"{name} is no setting, and sets nothing: {said}"]


def test_what_is_known_or_empty_or_of_others_says_nothing() -> None:
    known = {f"DOVETAIL_{name}": "x" for name in [*NAMES, *AMONG_PROCESSES, *OF_CONTAINERS]}
    others = {"PATH": "x", "_DOVETAIL_COMPLETE": "x", "DOVETAIL": "x", "DOVETAIL_PACK_AFTER": ""}
    assert list(unknown_variables({**known, **others, "dovetail_buckets": "2", "DOVETAIL_SECRET_SHOP": "x"})) == []


def test_the_names_besides_settings_are_those_that_there_are() -> None:
    besides = {name.removeprefix("DOVETAIL_") for name in OF_THE_CONTAINERS} - set(NAMES)
    assert besides == OF_CONTAINERS
    assert {name.removeprefix("DOVETAIL_") for name in ON_THE_PAGE} == AMONG_PROCESSES


@given(st.sampled_from(NAMES), st.data())
def test_a_slip_of_one_letter_is_said(name: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(name) - 1))
    slipped = data.draw(st.sampled_from([name[:place] + name[place + 1 :], f"{name[:place]}Q{name[place + 1 :]}"]))
    found = list(unknown_variables({f"DOVETAIL_{slipped}": "x"}))
    assert found or slipped in {*NAMES, *AMONG_PROCESSES, *OF_CONTAINERS}
    assert all("did you mean DOVETAIL_" in line for line in found)


@given(TEXTS)
def test_no_value_is_told(value: str) -> None:
    assert len(list(unknown_variables({"DOVETAIL_REDIS_URLS": f"s3cret{value}"}))) == 1
    assert "s3cret" not in "".join(unknown_variables({"DOVETAIL_REDIS_URLS": f"s3cret{value}"}))


def test_a_line_of_an_env_file_is_looked_at_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    Path(".env").write_text("DOVETAIL_BUCKET=7\nDOVETAIL_MYSQL_PORT=3307\nOTHER=1\n# DOVETAIL_BROKER=x\n")
    said: list[str] = []
    warn_of_unknown(said.append)
    found_settings(say=said.append)
    assert said == ["DOVETAIL_BUCKET is no setting, and sets nothing: did you mean DOVETAIL_BUCKETS?"] * 2


def test_a_connection_warns_of_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOVETAIL_DATA_DIR", str(tmp_path / "none"))
    monkeypatch.setenv("DOVETAIL_BUCKET", "7")
    meant = re.escape("did you mean DOVETAIL_BUCKETS?")
    with pytest.raises(dovetail.DovetailError), pytest.warns(UserWarning, match=meant) as caught:
        dovetail.connect()
    assert [Path(warning.filename).name for warning in caught] == [Path(__file__).name]
