"""Where a process listens: addresses of both families, ports that are taken, names that are none."""

from __future__ import annotations

import socket
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.changelog.errors import StackError
from dovetail.runtime.processes.listener import address_of, host_and_port, listening

SETTING = "DOVETAIL_SERVE_BIND"


@pytest.mark.parametrize("bind", ["127.0.0.1", "localhost", "0.0.0.0", "::1", "::"])
def test_a_connection_reaches_the_address_that_is_told(bind: str) -> None:
    with closing(listening(bind, 0, SETTING)) as listener:
        host, port = address_of(listener).rsplit(":", 1)
        socket.create_connection((host.strip("[]"), int(port)), timeout=5).close()


@pytest.mark.parametrize("bind", ["127.0.0.1", "::1"])
def test_another_port_is_taken_where_one_is_taken(bind: str) -> None:
    with (
        closing(listening(bind, 0, SETTING)) as first,
        closing(listening(bind, first.getsockname()[1], SETTING)) as second,
    ):
        assert address_of(first) != address_of(second)


@pytest.mark.parametrize("bind", ["203.0.113.9", "no.such.host.invalid", "a..b", "127.0.0.1:80", "[::1]", "x" * 300])
def test_an_address_of_no_machine_is_refused_by_its_setting(bind: str) -> None:
    with pytest.raises(StackError) as refused:
        listening(bind, 0, SETTING)
    assert refused.value.where == SETTING
    assert "127.0.0.1" in str(refused.value.fix)


@given(port=st.integers(0, 65535), host=st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)))
def test_a_url_tells_host_and_port_apart(host: object, port: int) -> None:
    assert host_and_port(str(host), port) == (f"{host}:{port}" if "." in str(host) else f"[{host}]:{port}")
