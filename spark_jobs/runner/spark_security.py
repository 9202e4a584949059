"""What keeps others away from a session of Spark: whoever reaches one of its ports without the secret is told nothing.

Without one Spark runs what it is sent, for every process of this machine, and on a cluster for every machine that
reaches it. Local, on Kubernetes and on YARN Spark makes a secret for each start, and hands it to its executors itself;
the daemons of a standalone cluster have one of their own, which is told to the runner too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pyspark import SparkConf, SparkContext

from dovetail.changelog.errors import StackError

AUTHENTICATE, SECRET = "spark.authenticate", "spark.authenticate.secret"
_SECRET_KEYS = r"(?i)secret|password|passphrase|token|access[.]?key|credential"
SECURITY = {
    AUTHENTICATE: "true",
    # What crosses the network is encrypted. What is spilled is not: it lies in a folder of the user's alone, and each
    # exchange would pay for it.
    "spark.network.crypto.enabled": "true",
    "spark.redaction.regex": _SECRET_KEYS,
}
_MAKES_SECRETS = re.compile(r"local(\[.*\])?|k8s://.*|yarn")


def expect_authenticated(conf: Mapping[str, str], master: str) -> None:
    """Raises StackError where who asks would not be known, or the daemons of a cluster would not know the runner."""
    if conf.get(AUTHENTICATE) != "true":
        raise StackError(
            f"{AUTHENTICATE} is {conf.get(AUTHENTICATE)}: anyone who reaches Spark could run code in it",
            where="DOVETAIL_SPARK_CONF",
            fix="leave it out: it is true",
        )
    if not _MAKES_SECRETS.fullmatch(master) and not conf.get(SECRET):
        raise StackError(
            f"the cluster {master} has to know who asks, and there is no {SECRET}",
            where="DOVETAIL_SPARK_CONF",
            fix=f"write {AUTHENTICATE} true and {SECRET} into a properties file that its user alone reads, name it"
            " here, and start master and workers with --properties-file of the same: docs/cluster.md",
        )


def start_java(conf: Mapping[str, str]) -> None:
    """The JVM of the session, unless it is there. PySpark by itself would write all of ``conf`` onto its command line,
    which every user of the machine reads: what is secret comes later, over the connection to it.
    """
    public = SparkConf(loadDefaults=False).setAll([one for one in conf.items() if not re.search(_SECRET_KEYS, one[0])])
    SparkContext._ensure_initialized(conf=public)  # noqa: SLF001
