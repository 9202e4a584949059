"""The settings: where they come from, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from dovetail.changelog.errors import StackError
from dovetail.runtime.settings import Settings, read_settings


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


@pytest.mark.parametrize(
    ("url", "password", "user"),
    [
        ("mysql+pymysql://dovetail@db:3306/catalog?ssl_verify_cert=false", "p@ss:w/rd %#?é$'\"", "dovetail"),
        ("mysql+pymysql://dovetail:other@db/catalog", "s3cret", "dovetail"),
        ("postgresql+psycopg://db/catalog", "s3cret", ""),
    ],
)
def test_a_password_of_the_catalog_may_have_any_characters(
    monkeypatch: pytest.MonkeyPatch, url: str, password: str, user: str
) -> None:
    monkeypatch.setenv("DOVETAIL_CATALOG_URL", url)
    monkeypatch.setenv("DOVETAIL_CATALOG_PASSWORD", password)
    settings = read_settings()
    found, given = make_url(settings.catalog_address), make_url(url)
    assert found == given.set(username=user, password=password)
    assert password not in f"{settings!r} {settings.model_dump_json()}"


def test_a_file_has_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOVETAIL_CATALOG_PASSWORD", "s3cret")
    monkeypatch.setenv("DOVETAIL_CATALOG_URL", "sqlite:////tmp/catalog.db")
    assert read_settings().catalog_address == "sqlite:////tmp/catalog.db"


def test_a_child_process_reads_the_same_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, kafka_port=1, catalog_url="sqlite://")  # type: ignore[arg-type]
    for name, value in settings.as_environment().items():
        monkeypatch.setenv(name, value)
    assert read_settings() == settings


def test_a_process_without_brokers_says_how_it_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DOVETAIL_BROKERS", raising=False)
    with pytest.raises(StackError, match="DOVETAIL_BROKERS is not set"):
        read_settings().expect_brokers("the lookup worker")


def test_checkpoints_are_in_a_folder_or_in_an_object_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOVETAIL_DATA_DIR", str(tmp_path))
    assert read_settings().checkpoints == str(tmp_path / "checkpoints")
    monkeypatch.setenv("DOVETAIL_CHECKPOINT_DIR", "s3a://bucket/prefix/")
    assert read_settings().checkpoints == "s3a://bucket/prefix"
    monkeypatch.setenv("DOVETAIL_CHECKPOINT_DIR", "s3://bucket/prefix")
    with pytest.raises(StackError, match=r"DOVETAIL_CHECKPOINT_DIR: .* neither a folder nor s3a://bucket/prefix"):
        read_settings()
