"""The settings of encryption and login at Kafka; their names are those of librdkafka, after ``kafka_``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, SecretStr

from dovetail.broker.address import MECHANISMS, BrokerSecurity, PasswordLogin, Tls, TokenLogin
from dovetail.changelog.errors import StackError

_Lower = BeforeValidator(lambda text: text.lower() if isinstance(text, str) else text)
_Upper = BeforeValidator(lambda text: text.upper() if isinstance(text, str) else text)
AbsolutePath = Annotated[Path, AfterValidator(lambda path: path.expanduser().absolute())]


class KafkaSecurity(BaseModel):
    """Part of the settings of a process. The broker of the local stack asks for none of them."""

    kafka_security_protocol: Annotated[Literal["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"], _Lower] | None = (
        Field(default=None, description="how the brokers are spoken to; unset: plaintext")
    )
    kafka_ssl_ca_location: AbsolutePath | None = Field(
        default=None, description="PEM file of the authorities whose brokers are trusted; unset: those of the system"
    )
    kafka_ssl_certificate_location: AbsolutePath | None = Field(
        default=None, description="PEM file of the certificate that is shown to the brokers"
    )
    kafka_ssl_key_location: AbsolutePath | None = Field(default=None, description="PEM file of its key")
    kafka_ssl_key_password: SecretStr | None = Field(default=None, description="password of the key")
    kafka_ssl_endpoint_identification_algorithm: Annotated[Literal["https", "none"], _Lower] = Field(
        default="https", description="https: the certificate of a broker must be for its host; none: for any"
    )
    kafka_sasl_mechanism: (
        Annotated[Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"], _Upper] | None
    ) = Field(default=None, description="how the brokers are told who asks")
    kafka_sasl_username: str | None = Field(default=None, description="of PLAIN and SCRAM")
    kafka_sasl_password: SecretStr | None = Field(default=None, description="of PLAIN and SCRAM")
    kafka_sasl_oauthbearer_token_endpoint_url: str | None = Field(
        default=None, description="where OAUTHBEARER gets its tokens, by OpenID Connect's client credentials"
    )
    kafka_sasl_oauthbearer_client_id: str | None = Field(default=None, description="of OAUTHBEARER")
    kafka_sasl_oauthbearer_client_secret: SecretStr | None = Field(default=None, description="of OAUTHBEARER")
    kafka_sasl_oauthbearer_scope: str | None = Field(default=None, description="of OAUTHBEARER, where one is asked for")

    @property
    def kafka_security(self) -> BrokerSecurity:
        """Raises StackError for settings that do not make a whole."""
        protocol = self.kafka_security_protocol
        if protocol is None:
            for name in _LOGIN + _TLS:
                if getattr(self, name) is not None:
                    raise StackError(
                        f"{_variable(name)} is set, and {_variable('kafka_security_protocol')} is not",
                        where="settings",
                        fix=f"set {_variable('kafka_security_protocol')} to "
                        + ("ssl or sasl_ssl" if name in _TLS else "sasl_ssl, or to sasl_plaintext"),
                    )
            return BrokerSecurity()
        return BrokerSecurity(
            self._tls() if protocol.endswith("ssl") else None, self._login() if protocol.startswith("sasl") else None
        )

    def _tls(self) -> Tls:
        for name in _FILES:
            path = getattr(self, name)
            if path is not None and not path.is_file():
                raise StackError(f"{_variable(name)} names no file: {path}", where="settings")
        if (self.kafka_ssl_certificate_location is None) != (self.kafka_ssl_key_location is None):
            raise StackError(
                "a certificate and its key belong together",
                where="settings",
                fix=f"set both {_variable('kafka_ssl_certificate_location')} and {_variable('kafka_ssl_key_location')}",
            )
        return Tls(
            str(self.kafka_ssl_ca_location or ""),
            str(self.kafka_ssl_certificate_location or ""),
            str(self.kafka_ssl_key_location or ""),
            _plain(self.kafka_ssl_key_password),
            self.kafka_ssl_endpoint_identification_algorithm == "https",
        )

    def _login(self) -> PasswordLogin | TokenLogin:
        if self.kafka_sasl_mechanism is None:
            raise _missing("kafka_sasl_mechanism", f"one of {', '.join(MECHANISMS)}")
        token = self.kafka_sasl_mechanism == "OAUTHBEARER"
        for name in _TOKEN[:3] if token else _PASSWORD:
            if getattr(self, name) is None:
                raise _missing(name, f"which {self.kafka_sasl_mechanism} needs")
        if token:
            return TokenLogin(
                self.kafka_sasl_oauthbearer_token_endpoint_url or "",
                self.kafka_sasl_oauthbearer_client_id or "",
                _plain(self.kafka_sasl_oauthbearer_client_secret),
                self.kafka_sasl_oauthbearer_scope or "",
            )
        return PasswordLogin(
            self.kafka_sasl_mechanism, self.kafka_sasl_username or "", _plain(self.kafka_sasl_password)
        )


_PASSWORD = ("kafka_sasl_username", "kafka_sasl_password")
_TOKEN = (
    "kafka_sasl_oauthbearer_token_endpoint_url",
    "kafka_sasl_oauthbearer_client_id",
    "kafka_sasl_oauthbearer_client_secret",
    "kafka_sasl_oauthbearer_scope",
)
_LOGIN = ("kafka_sasl_mechanism", *_PASSWORD, *_TOKEN)
_FILES = ("kafka_ssl_ca_location", "kafka_ssl_certificate_location", "kafka_ssl_key_location")
_TLS = (*_FILES, "kafka_ssl_key_password")


def _missing(name: str, what: str) -> StackError:
    return StackError(f"{_variable(name)} is not set: {what}", where="settings")


def _variable(name: str) -> str:
    return f"DOVETAIL_{name.upper()}"


def _plain(secret: SecretStr | None) -> str:
    return "" if secret is None else secret.get_secret_value()
