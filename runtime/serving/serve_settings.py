"""The settings of the HTTP server, ``dovetail serve``."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from dovetail.runtime.kafka_security import AbsolutePath

_Port = Annotated[int, Field(ge=0, le=65535)]
_Seconds = Annotated[float, Field(gt=0)]
Names = Annotated[str, Field(pattern=r"^[^\s,]*(,[^\s,]+)*$")]


class ServeSettings(BaseModel):
    """Part of the settings of a process."""

    serve_port: _Port = Field(default=6068, description="port of the HTTP server; 0 or taken: a free one")
    serve_bind: str = Field(default="127.0.0.1", description="address that its port is bound to")
    serve_hosts: Names | None = Field(
        default=None, description="names by which it is called, besides its address and localhost, with commas between"
    )
    serve_origins: Names | None = Field(
        default=None,
        description="origins of its pages, where a proxy in front gives it another: `https://dovetail.example`",
    )
    serve_tls_certificate: AbsolutePath | None = Field(
        default=None, description="PEM file of its certificate and those that vouch for it; unset: no TLS"
    )
    serve_tls_key: AbsolutePath | None = Field(default=None, description="PEM file of the key of its certificate")
    serve_users: AbsolutePath | None = Field(
        default=None, description="file of its users; unset: `serve-users.json` in data_dir"
    )
    serve_first_admin: str | None = Field(
        default=None,
        description="admin who is added where no user is yet; token in `first-admin-token` beside the file of users",
    )
    serve_unprotected: Literal["on", "off"] = Field(
        default="off", description="on: it may listen beyond loopback without users or without TLS"
    )
    serve_body_bytes: int = Field(default=1 << 20, ge=1024, description="largest body of a request")
    serve_body_s: _Seconds = Field(
        default=10, description="longest time that a request takes to arrive: its headers, then its body"
    )
    serve_statement_s: _Seconds = Field(default=30, description="longest time that the statements of a request take")
    serve_statements: int = Field(default=8, ge=1, description="requests with statements at work at once")
    serve_statements_per_user: int = Field(default=4, ge=1, description="those of one user among them")
    serve_rows: int = Field(default=100_000, ge=1, description="most rows of an answer")
    serve_answer_bytes: int = Field(default=64 << 20, ge=1024, description="largest answer, in bytes")
    serve_send_s: _Seconds = Field(
        default=60, description="longest wait for a client that takes nothing of its answer, before it is cut off"
    )
    serve_tails: int = Field(default=500, ge=1, description="clients that follow changes at once")
    serve_tail_rows: int = Field(
        default=20_000, ge=1, description="rows that wait for a client that follows; one with more is told to resume"
    )
    serve_watch_s: _Seconds = Field(
        default=5, description="between two looks at the queries, which it keeps for an hour: the charts of its page"
    )
