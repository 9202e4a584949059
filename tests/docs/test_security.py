"""The commands of the page on security do what they say."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from dovetail.broker.names import MARKS_TOPIC
from dovetail.dictionaries.cache.cold.redis_client import check_url
from dovetail.runtime.settings import read_settings
from dovetail.services.commands.command_topics import COMMANDS, RESULTS
from dovetail.spark_jobs.source.batch_log import BATCHES_TOPIC
from tests.docs.pages import Page
from tests.servers.certificates import write_certificates

PAGE = Page.of("docs/security.md")
EXPORTED = dict(
    word.split("=", 1)
    for line in re.findall(r"^export (.*)$", PAGE.text, re.MULTILINE)
    for word in shlex.split(line)  # as a shell cuts them
)


@pytest.fixture
def exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The variables of the page, with their files where a test may have some."""
    write_certificates(tmp_path)
    for name, value in EXPORTED.items():
        monkeypatch.setenv(name, value.replace("/etc/dovetail", str(tmp_path)))
    return tmp_path


def test_the_cluster_is_spoken_to_as_the_page_says(exported: Path) -> None:
    brokers = read_settings().expect_brokers("the test")
    assert brokers.servers == "broker-1.example:9094,broker-2.example:9094"
    assert brokers.security.settings() == {
        "security.protocol": "sasl_ssl",
        "ssl.ca.location": str(exported / "ca.pem"),
        "ssl.endpoint.identification.algorithm": "https",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "dovetail",
        "sasl.password": "..",
    }


def test_the_address_of_redis_is_one(exported: Path) -> None:
    url = read_settings().redis_url
    assert url is not None
    assert check_url(url.get_secret_value()).startswith("rediss://dovetail:..@redis.example:6380/0?ssl_ca_certs=/")


@pytest.mark.parametrize("topic", [MARKS_TOPIC, BATCHES_TOPIC, COMMANDS, RESULTS])
def test_who_grants_rights_is_told_of_the_topics_that_dovetail_has_for_itself(topic: str) -> None:
    assert topic in PAGE.code
