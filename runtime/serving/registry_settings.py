"""The settings of the schema registry: which one is asked, and how the one of the local stack is served."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field, SecretStr

from dovetail.broker.address import RegistryAddress
from dovetail.runtime.kafka_security import AbsolutePath

_Port = Annotated[int, Field(ge=0, le=65535)]
_Seconds = Annotated[float, Field(gt=0)]
_Url = Annotated[str, Field(pattern=r"^https?://[^\s@/]+(/[^\s@]*)?$")]
_Names = Annotated[str, Field(pattern=r"^[^\s,]*(,[^\s,]+)*$")]


class RegistrySettings(BaseModel):
    """Part of the settings of a process."""

    schema_registry_url: _Url | None = Field(
        default=None, description="schema registry, without a login in it; unset: the one of the local stack"
    )
    schema_registry_user: str | None = Field(default=None, description="who asks it, and whom the local one lets in")
    schema_registry_password: SecretStr | None = Field(default=None, description="password of that user")
    schema_registry_ca_location: AbsolutePath | None = Field(
        default=None, description="PEM file of the authorities that it is trusted by; unset: those of the system"
    )
    schema_registry_timeout_s: _Seconds = Field(default=10, description="longest wait for its answer")
    schema_registry_port: _Port = Field(
        default=8081, description="port of the local schema registry; 0 or taken: a free one"
    )
    schema_registry_bind: str = Field(default="127.0.0.1", description="address that its port is bound to")
    schema_registry_hosts: _Names | None = Field(
        default=None, description="names by which it is called, besides its address and localhost, with commas between"
    )
    schema_registry_tls_certificate: AbsolutePath | None = Field(
        default=None, description="PEM file of the certificate of the local one; unset: no TLS"
    )
    schema_registry_tls_key: AbsolutePath | None = Field(default=None, description="PEM file of its key")
    schema_registry_unprotected: Literal["on", "off"] = Field(
        default="off", description="on: the local one may listen beyond loopback without a user or without TLS"
    )

    @property
    def schema_registry(self) -> RegistryAddress | None:
        """The one that is named, or runs in the local stack."""
        if self.schema_registry_url is None:
            return None
        return RegistryAddress(
            self.schema_registry_url,
            self.schema_registry_user or "",
            "" if self.schema_registry_password is None else self.schema_registry_password.get_secret_value(),
            str(self.schema_registry_ca_location or ""),
            self.schema_registry_timeout_s,
        )
