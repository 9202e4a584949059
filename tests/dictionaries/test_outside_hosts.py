"""Where a statement may make a process connect: which addresses, of which hosts, and what comes back from there."""

from __future__ import annotations

import gzip
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dovetail.changelog.errors import DovetailError, ServiceUnavailable, SourceRefused
from dovetail.changelog.schema import Column
from dovetail.dictionaries.check import define
from dovetail.dictionaries.definition.definition import LayoutSpec, SourceSpec
from dovetail.dictionaries.definition.options import Parameter
from dovetail.dictionaries.open import Checkable, open_source
from dovetail.dictionaries.outside.hosts import Hosts
from dovetail.dictionaries.outside.outside import Outside
from dovetail.dictionaries.resources import Resources

COLUMNS = (Column("id", pa.int64()), Column("name", pa.string()))
KINDS = ("mysql", "postgresql", "clickhouse", "http")
NEVER = (
    "169.254.169.254",
    "169.254.1.1",
    "0.0.0.0",
    "0",
    "0.1.2.3",
    "224.0.0.1",
    "255.255.255.255",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "2852039166",  # 169.254.169.254 as one number,
    "0xa9fea9fe",  # and as inet_aton reads others
    "0251.0376.0251.0376",
    "169.254.43518",
    "fe80::1",
    "fe80::1%1",
    "febf::1",
    "ff02::1",
    "::",
    "::ffff:169.254.169.254",
    "::ffff:0.0.0.0",
    "::169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "2002:a9fe:a9fe::1",
    "fd00:ec2::254",
    "fd20:ce::254",
)
NO_HOSTS = (
    *("/var/run/postgresql", "@abstract", "a,169.254.169.254", "127.0.0.1,127.0.0.1"),
    *("", " ", "a b", "h\0", "x" * 300),
)


def source_at(kind: str, host: str, port: int, **more: Parameter) -> SourceSpec:
    if kind == "http":
        named = f"[{host}]" if ":" in host else host
        return SourceSpec("http", {"url": f"http://{named}:{port}/rows", "timeout": 10.0, **more})
    return SourceSpec(
        kind, {"host": host, "port": port, "table": "t", "connect_timeout": 10.0, "timeout": 10.0, **more}
    )


def opened(source: SourceSpec, hosts: str = "", max_bytes: int = 1000) -> Checkable:
    made = define("d", COLUMNS, ["id"], source, LayoutSpec("direct"))
    return open_source(made, Resources(None, Outside(Path("/none"), hosts=hosts, max_bytes=max_bytes)))


def fault_of(source: SourceSpec, hosts: str = "", max_bytes: int = 1000) -> DovetailError:
    with pytest.raises(DovetailError) as caught, closing(opened(source, hosts, max_bytes)) as made:
        made.check()
    return caught.value


@dataclass
class Network:
    """Names and what they resolve to, one answer after the other; and the places that were connected to."""

    names: dict[str, list[str]] = field(default_factory=dict)
    reached: list[str] = field(default_factory=list)


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Network:
    """Of Python's sockets: those of libpq are told by what psycopg is given."""
    made, resolve, connect = Network(), socket.getaddrinfo, socket.socket.connect

    def resolved(host: Any, port: Any, *given: Any, **named: Any) -> Any:
        answers = made.names.get(host)
        if answers is None:
            return resolve(host, port, *given, **named)
        address = answers.pop(0) if len(answers) > 1 else answers[0]
        return resolve(address, port, *given, **named)

    def connected(self: socket.socket, address: Any) -> None:
        made.reached.append(address[0])
        connect(self, address)

    def psycopg_connected(**keywords: Any) -> Any:
        made.reached.extend(keywords["hostaddr"].split(","))
        raise OSError("not here")

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    monkeypatch.setattr(socket.socket, "connect", connected)
    monkeypatch.setattr("psycopg.connect", psycopg_connected)
    return made


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("host", NEVER)
def test_some_addresses_are_never_connected_to(network: Network, kind: str, host: str) -> None:
    """Nor if they are listed."""
    for hosts in ("", f"{host}, 0.0.0.0/0, ::/0"):
        error = fault_of(source_at(kind, host, 80), hosts)
        assert isinstance(error, SourceRefused), error
    assert network.reached == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_name_that_means_such_an_address_is_refused(network: Network, kind: str) -> None:
    network.names["metadata.example"] = ["169.254.169.254"]
    error = fault_of(source_at(kind, "metadata.example", 80))
    assert isinstance(error, SourceRefused)
    assert "link-local" in error.what
    assert network.reached == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_name_that_changes_while_it_is_judged_gains_nothing(network: Network, kind: str) -> None:
    """DNS rebinding: the address that was judged is the one that is connected to."""
    for _ in range(3):
        network.names["rebound.example"] = ["127.0.0.1", "169.254.169.254"]
        fault_of(source_at(kind, "rebound.example", 9))
    assert set(network.reached) == {"127.0.0.1"}


@pytest.mark.parametrize("kind", ["mysql", "postgresql", "clickhouse"])
@pytest.mark.parametrize("host", NO_HOSTS)
def test_what_is_no_host_is_refused(network: Network, kind: str, host: str) -> None:
    assert isinstance(fault_of(source_at(kind, host, 5432)), SourceRefused)
    assert network.reached == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_host_that_is_not_listed_is_not_reached(network: Network, kind: str) -> None:
    error = fault_of(source_at(kind, "127.0.0.1", 9), "db.example, 10.0.0.0/8, 127.0.0.1:10")
    assert isinstance(error, SourceRefused)
    assert "DOVETAIL_SOURCE_HOSTS" in error.fix
    assert network.reached == []
    assert not isinstance(fault_of(source_at(kind, "127.0.0.1", 9), "127.0.0.1:9"), SourceRefused)
    assert network.reached


@pytest.mark.parametrize(
    ("listed", "host", "address", "port", "allowed"),
    [
        ("db", "db", "10.1.1.1", 1, True),
        ("db", "DB.", "10.1.1.1", 1, True),
        ("db", "db2", "10.1.1.1", 1, False),
        ("db", "x.db", "10.1.1.1", 1, False),
        ("*.example", "a.b.example", "10.1.1.1", 1, True),
        ("*.example", "example", "10.1.1.1", 1, False),
        ("*.example", "aexample", "10.1.1.1", 1, False),
        ("other\n db:5", "db", "10.1.1.1", 5, True),
        ("db:5", "db", "10.1.1.1", 6, False),
        ("10.0.0.0/8", "any", "10.1.1.1", 1, True),
        ("10.0.0.0/8", "any", "11.1.1.1", 1, False),
        ("10.1.1.1", "any", "10.1.1.1", 1, True),
        ("[fd12::1]:5", "any", "fd12::1", 5, True),
        ("fd12::1", "any", "fd12::1", 5, True),
        ("fd12::/16", "any", "fd13::1", 5, False),
        ("none", "any", "10.1.1.1", 1, False),
        (" , ", "any", "10.1.1.1", 1, True),
    ],
)
def test_what_a_list_allows(
    network: Network, listed: str, host: str, address: str, port: int, *, allowed: bool
) -> None:
    network.names[host] = [address]
    if allowed:
        assert Hosts.of(listed).addresses(host, port, "") == (address,)
    else:
        with pytest.raises(SourceRefused):
            Hosts.of(listed).addresses(host, port, "")


# -- answers over HTTP --

Answer = Callable[[socket.socket], None]


@contextmanager
def answering(*answers: Answer) -> Iterator[int]:
    """The port of a server that takes a request and gives one of ``answers``, by turns."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:

        def serve() -> None:
            for turn in range(100):
                try:
                    taken, _ = listener.accept()
                except OSError:
                    return
                with taken:
                    try:
                        taken.recv(65_536)
                        answers[turn % len(answers)](taken)
                    except OSError:
                        continue

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(10)


def text(head: str, body: bytes = b"") -> Answer:
    return lambda taken: taken.sendall(head.replace("\n", "\r\n").encode() + b"\r\n\r\n" + body)


def dripping(head: bytes, drop: bytes) -> Answer:
    """``drop`` again and again, well within each wait for the next one."""

    def answer(taken: socket.socket) -> None:
        taken.sendall(head)
        while True:
            taken.sendall(drop)
            time.sleep(0.05)

    return answer


def endless(head: bytes, piece: bytes) -> Answer:
    def answer(taken: socket.socket) -> None:
        taken.sendall(head)
        while True:
            taken.sendall(piece)

    return answer


ROW = b'{"id": 1, "name": "pen"}\n'
OK = "HTTP/1.1 200 OK\nConnection: close"
_PACKED = gzip.compress(b" " * 100_000_000)


def get(port: int, **more: Parameter) -> SourceSpec:
    return source_at("http", "127.0.0.1", port, method="get", **more)


def test_an_answer_is_read_plain_and_packed() -> None:
    packed = text(f"{OK}\nContent-Encoding: gzip", gzip.compress(ROW))
    with answering(text(OK, ROW), packed) as port, closing(opened(get(port))) as made:
        assert [list(made.load()), list(made.load())] == [[[(1, "pen")]], [[(1, "pen")]]]


@pytest.mark.parametrize(
    "answer",
    [
        endless(b"HTTP/1.1 200 OK\r\n\r\n", ROW * 1000),
        endless(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"400\r\n" + b" " * 0x400 + b"\r\n"),
        text(f"{OK}\nContent-Length: 100000000000", ROW * 100),
        text(f"{OK}\nContent-Encoding: gzip", _PACKED),
        text(f"{OK}\nContent-Encoding: br", b"x"),
        text(f"{OK}\nContent-Encoding: zstd", b"x"),
        text(f"{OK}\nContent-Encoding: gzip, gzip", b"x"),
        text(f"{OK}\nContent-Encoding: gzip", b"no gzip"),
    ],
)
def test_an_answer_is_bounded_also_unpacked(answer: Answer) -> None:
    with answering(answer) as port:
        error = fault_of(get(port))
    assert isinstance(error, SourceRefused)
    assert "more than 1,000 bytes" in error.what or "pack" in error.what


@pytest.mark.parametrize(
    "answer",
    [
        dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", b" "),
        dripping(b"HTTP/1.1 200 OK\r\nX-Drip: ", b"x"),
        dripping(b"", b"\r\n"),
        dripping(b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
)
def test_bytes_that_drip_in_take_no_longer_than_the_timeout(answer: Answer) -> None:
    with answering(answer) as port:
        error = fault_of(get(port, timeout=0.3))
    assert isinstance(error, ServiceUnavailable), error


def redirection(place: str, status: str = "302 Found") -> Answer:
    return text(f"HTTP/1.1 {status}\nConnection: close\nContent-Length: 0\nLocation: {place}")


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See", "307 Keep", "308 Keep"])
@pytest.mark.parametrize(
    "place",
    [
        "http://169.254.169.254/latest",
        "http://localhost:{port}/rows",
        "http://127.0.0.1:{other}/rows",
        "//127.0.0.2:{port}/rows",
        "file:///etc/passwd",
        "ftp://127.0.0.1/",
        "http://user:word@127.0.0.1:{other}/",
    ],
)
def test_no_redirection_leads_elsewhere(network: Network, place: str, status: str) -> None:
    requests: list[bytes] = []
    with answering(lambda taken: requests.append(b"")) as other:

        def redirect(taken: socket.socket) -> None:
            redirection(place.format(port=taken.getsockname()[1], other=other), status)(taken)

        with answering(redirect) as port:
            error = fault_of(get(port))
    assert isinstance(error, SourceRefused), error
    assert requests == []
    assert set(network.reached) == {"127.0.0.1"}


def test_a_redirection_on_the_same_host_is_followed() -> None:
    with answering(redirection("/there"), text(OK, ROW)) as port, closing(opened(get(port))) as made:
        assert list(made.load()) == [[(1, "pen")]]


def test_redirections_in_a_circle_end() -> None:
    with answering(redirection("/again")) as port:
        assert isinstance(fault_of(get(port)), ServiceUnavailable)


def test_bodies_of_redirections_are_not_read() -> None:
    large = endless(b"HTTP/1.1 302 Found\r\nLocation: /there\r\n\r\n", b" " * 100_000)
    with answering(large, text(OK, ROW)) as port, closing(opened(get(port))) as made:
        assert list(made.load()) == [[(1, "pen")]]


def test_no_proxy_and_no_netrc_of_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The one would reach what is refused here, the other lends logins to whoever writes a URL."""
    sent: list[bytes] = []

    def take(taken: socket.socket) -> None:
        text(OK, ROW)(taken)

    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password hunter2\n")
    (tmp_path / "netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with answering(lambda taken: sent.append(b"proxy")) as proxy, answering(take) as port:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy}")
        with closing(opened(get(port))) as made:
            assert list(made.load()) == [[(1, "pen")]]
    assert sent == []


# -- what drivers would do by themselves --


def _mysql_packet(number: int, content: bytes) -> bytes:
    return len(content).to_bytes(3, "little") + bytes([number]) + content


_GREETING = (
    b"\x0a5.7.0\0" + (1).to_bytes(4, "little") + b"a" * 8 + b"\0" + (0xF7FF).to_bytes(2, "little")
    + b"\x21" + (2).to_bytes(2, "little") + (0x000F).to_bytes(2, "little") + b"\x15" + b"\0" * 10 + b"b" * 12 + b"\0"
    + b"mysql_native_password\0"
)  # fmt: skip
_OK = b"\0\0\0\x02\0\0\0"


def test_a_server_of_mysql_gets_no_file(tmp_path: Path) -> None:
    """It answers a statement by asking for a file, which the protocol lets it (LOAD DATA LOCAL)."""
    secret = tmp_path / "secret"
    secret.write_text("hunter2")
    sent: list[bytes] = []

    def serve(listener: socket.socket) -> None:
        taken, _ = listener.accept()
        with taken:
            taken.settimeout(5)
            taken.sendall(_mysql_packet(0, _GREETING))
            taken.recv(4096)
            taken.sendall(_mysql_packet(2, _OK))
            taken.recv(4096)
            taken.sendall(_mysql_packet(1, b"\xfb" + str(secret).encode()))
            sent.append(taken.recv(4096))

    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        thread = threading.Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        fault_of(source_at("mysql", "127.0.0.1", listener.getsockname()[1], user="u", password="p"))
        thread.join(10)
    assert len(sent) == 1
    assert b"hunter2" not in sent[0]


@pytest.mark.parametrize("password", [None, "given"])
def test_libpq_gets_no_password_from_its_home(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, password: str | None
) -> None:
    """A server that asks for the password in plain text gets none that SOURCE does not give."""
    (tmp_path / "pgpass").write_text("*:*:*:*:hunter2\n")
    (tmp_path / "pgpass").chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "pgpass"))
    heard: list[bytes] = []

    def serve(listener: socket.socket) -> None:
        for _ in range(2):
            taken, _ = listener.accept()
            with taken:
                taken.settimeout(5)
                first = taken.recv(4096)
                if first[4:8] == (80877103).to_bytes(4, "big"):  # may it be TLS?
                    taken.sendall(b"N")
                    first = taken.recv(4096)
                taken.sendall(b"R" + (8).to_bytes(4, "big") + (3).to_bytes(4, "big"))
                heard.append(taken.recv(4096))
            if heard:
                return

    given: Mapping[str, Parameter] = {} if password is None else {"password": password}
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        thread = threading.Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        fault_of(source_at("postgresql", "127.0.0.1", listener.getsockname()[1], user="u", db="d", **given))
        thread.join(10)
    assert b"hunter2" not in b"".join(heard)
    assert (b"given" in b"".join(heard)) == (password is not None)
