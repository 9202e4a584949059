"""The settings: where they come from, what they refuse, and that docs/operations.md names them all."""

from __future__ import annotations

from pathlib import Path

import pytest

from changelog.errors import StackError
from runtime.settings import Settings, read_settings
from tests.paths import ROOT

OPERATIONS = ROOT / "docs" / "operations.md"


def test_the_environment_gives_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOVETAIL_KAFKA_PORT", "19092")
    monkeypatch.setenv("DOVETAIL_DATA_DIR", str(tmp_path))
    settings = read_settings()
    assert settings.kafka_port == 19092
    assert settings.jars == tmp_path / "jars"
    assert settings.catalog_address == f"sqlite:///{tmp_path}/catalog.db"


def test_a_relative_data_dir_is_of_the_working_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOVETAIL_DATA_DIR", "there")
    assert read_settings().data_dir == tmp_path / "there"


def test_a_wrong_one_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOVETAIL_KAFKA_PORT", "99999")
    with pytest.raises(StackError, match=r"setting DOVETAIL_KAFKA_PORT: .*65535"):
        read_settings()


def test_secrets_do_not_print(monkeypatch: pytest.MonkeyPatch) -> None:
    address = "mysql+pymysql://dovetail:s3cret@db/dovetail"
    monkeypatch.setenv("DOVETAIL_CATALOG_URL", address)
    settings = read_settings()
    assert "s3cret" not in f"{settings} {settings!r} {settings.model_dump_json()}"
    assert settings.catalog_address == address


def test_a_child_process_reads_the_same_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, kafka_port=1, catalog_url="sqlite://")  # type: ignore[arg-type]
    for name, value in settings.as_environment().items():
        monkeypatch.setenv(name, value)
    assert read_settings() == settings


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_is_on_the_operations_page(name: str) -> None:
    help_text = Settings.model_fields[name].description
    assert f"| `DOVETAIL_{name.upper()}` |" in OPERATIONS.read_text()
    assert help_text is not None
    assert help_text in OPERATIONS.read_text()


def test_a_process_without_brokers_says_how_it_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DOVETAIL_BROKERS", raising=False)
    with pytest.raises(StackError, match="DOVETAIL_BROKERS is not set"):
        read_settings().expect_brokers("the lookup worker")
