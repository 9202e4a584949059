"""How an object store is reached: from the settings that Hadoop's ``s3a`` reads, and the environment that SDKs read.

Spark writes its part of a checkpoint by way of Hadoop, Dovetail its own by way of Arrow. Both are told the same.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

_S3A = "spark.hadoop.fs.s3a."
_AWS = "amazonaws.com"
_REGION = "us-east-1"
"""What a store that is not Amazon's takes, which has no regions as a rule."""
_OF_HADOOP = {
    # By default it tries for minutes. A query that gives up is started again, and says meanwhile what it waits for.
    f"{_S3A}attempts.maximum": "3",
    f"{_S3A}retry.limit": "4",
    # Files of the state leave by the plain client: the other one took a "100 Continue" for an answer, moto's at least.
    f"{_S3A}optimized.copy.from.local.enabled": "false",
}


@dataclass(frozen=True)
class S3Access:
    """endpoint  host and port; empty: Amazon's, by region
    region     empty: as the libraries find it
    access_key, secret_key, session_token  empty: those of a profile or of the machine, as the libraries find them
    path_style  whether the bucket is named in the path, and not in the host
    """

    endpoint: str = ""
    scheme: str = "https"
    region: str = ""
    access_key: str = ""
    secret_key: str = field(default="", repr=False)
    session_token: str = field(default="", repr=False)
    path_style: bool = False

    @staticmethod
    def of(bucket: str, conf: Mapping[str, str], environment: Mapping[str, str] = os.environ) -> S3Access:
        """conf  settings of Spark; what is set for the bucket stands before what is set for all"""
        set_to = _setting(bucket, conf)
        encrypted = set_to("connection.ssl.enabled").lower() != "false"
        found = set_to("endpoint") or _first(environment, "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
        split = urlsplit(found if "://" in found else f"//{found}", scheme="https" if encrypted else "http")
        own = bool(split.netloc) and not split.netloc.endswith(_AWS)
        region = set_to("endpoint.region") or _first(environment, "AWS_REGION", "AWS_DEFAULT_REGION")
        key = set_to("access.key")
        return S3Access(
            endpoint=split.netloc,
            scheme=split.scheme,
            region=region or (_REGION if own else ""),
            access_key=key or environment.get("AWS_ACCESS_KEY_ID", ""),
            secret_key=set_to("secret.key") if key else environment.get("AWS_SECRET_ACCESS_KEY", ""),
            session_token=set_to("session.token") if key else environment.get("AWS_SESSION_TOKEN", ""),
            path_style=(set_to("path.style.access") or str(own)).lower() == "true",
        )

    @property
    def spark_conf(self) -> dict[str, str]:
        """The same for Hadoop: it does not read all of the environment, and executors have another one."""
        given = {
            "endpoint": self.endpoint and f"{self.scheme}://{self.endpoint}",
            "endpoint.region": self.region,
            "access.key": self.access_key,
            "secret.key": self.secret_key,
            "session.token": self.session_token,
            "path.style.access": str(self.path_style).lower(),
        }
        return _OF_HADOOP | {f"{_S3A}{name}": value for name, value in given.items() if value}


def _setting(bucket: str, conf: Mapping[str, str]) -> Callable[[str], str]:
    return lambda name: conf.get(f"{_S3A}bucket.{bucket}.{name}") or conf.get(f"{_S3A}{name}") or ""


def _first(environment: Mapping[str, str], *names: str) -> str:
    return next((found for name in names if (found := environment.get(name))), "")
