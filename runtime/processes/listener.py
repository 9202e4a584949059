"""Where a process listens."""

from __future__ import annotations

import errno
import os
import socket

from dovetail.changelog.errors import StackError


def listening(bind: str, port: int, setting: str) -> socket.socket:
    """A listening socket at ``port`` of the address or host ``bind``, or at a free port where that one is taken.

    Raises StackError where this machine has no such address; ``setting`` is the variable that named it.
    """
    family, host = _resolved(bind, setting)
    try:
        return socket.create_server((host, port), family=family)
    except OSError as failure:
        if failure.errno == errno.EACCES:
            raise _reserved(port, setting) from None
        if failure.errno != errno.EADDRINUSE:
            raise _unbound(bind, setting, os.strerror(failure.errno or 0)) from None
    return socket.create_server((host, 0), family=family)


def address_of(listener: socket.socket) -> str:
    """``host:port``, as it stands in a URL."""
    return host_and_port(*listener.getsockname()[:2])


def host_and_port(host: str, port: int) -> str:
    """An IPv6 address stands in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _resolved(bind: str, setting: str) -> tuple[socket.AddressFamily, str]:
    try:
        family, _kind, _protocol, _name, place = socket.getaddrinfo(bind, None, type=socket.SOCK_STREAM)[0]
    except socket.gaierror as failure:
        raise _unbound(bind, setting, str(failure.strerror)) from None
    except UnicodeError:
        raise _unbound(bind, setting, "this is no name of a host") from None
    return family, str(place[0])


def _unbound(bind: str, setting: str, reason: str) -> StackError:
    return StackError(
        f"nothing can listen at {bind!r}: {reason}",
        where=setting,
        fix=f"set {setting} to an address of this machine: 127.0.0.1, or 0.0.0.0 for all that it has",
    )


def _reserved(port: int, setting: str) -> StackError:
    name = f"{setting.removesuffix('_BIND')}_PORT"
    return StackError(f"this user may not listen at port {port}", where=name, fix=f"set {name} to a port above 1023")
