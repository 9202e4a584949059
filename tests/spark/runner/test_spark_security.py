"""Whoever reaches a port of Spark without the secret is told nothing, and no secret stands where others read it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import psutil
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from dovetail.changelog.errors import StackError
from dovetail.spark_jobs.runner.spark_security import SECURITY, expect_authenticated
from tests.paths import ROOT


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*,4]", "yarn", "k8s://https://kubernetes"])
def test_where_spark_makes_a_secret_none_is_asked_for(master: str) -> None:
    expect_authenticated(SECURITY, master)


@pytest.mark.parametrize("master", ["spark://a:7077", "spark://a:7077,b:7077", "local-cluster[2,1,1024]"])
def test_the_daemons_of_a_cluster_know_the_runner_by_a_secret(master: str) -> None:
    with pytest.raises(StackError, match=r"there is no spark\.authenticate\.secret"):
        expect_authenticated(SECURITY, master)
    expect_authenticated(SECURITY | {"spark.authenticate.secret": "x"}, master)


@pytest.mark.parametrize("value", ["false", "", "True "])
def test_who_asks_is_always_asked_for_the_secret(value: str) -> None:
    with pytest.raises(StackError, match="anyone who reaches Spark could run code in it"):
        expect_authenticated(SECURITY | {"spark.authenticate": value}, "local[2]")


@pytest.mark.services
def test_a_port_of_the_driver_answers_who_has_the_secret_alone(spark: SparkSession) -> None:
    """With the client that Spark's own executors use: by the security of the session it is answered."""
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001
    own = jvm.org.apache.spark.SparkEnv.get()
    address = own.rpcEnv().address()
    known = spark.sparkContext._jsc.sc().conf()  # noqa: SLF001

    assert "HeartbeatReceiver" in _answered(jvm, address, known, own.securityManager())
    nothing = jvm.org.apache.spark.SparkConf(False)
    keys = getattr(getattr(jvm.org.apache.spark.internal.config, "package$"), "MODULE$")
    stranger = jvm.org.apache.spark.SecurityManager(nothing, jvm.scala.Option.empty(), keys.AUTH_SECRET_FILE())
    with pytest.raises(Py4JJavaError, match="Expected SaslMessage"):
        _answered(jvm, address, nothing, stranger)


def _answered(jvm: Any, address: Any, conf: Any, security: Any) -> str:
    client = jvm.org.apache.spark.rpc.RpcEnv.create("stranger", "127.0.0.1", 0, conf, security, True)
    try:
        return str(client.setupEndpointRef(address, "HeartbeatReceiver").toString())
    finally:
        client.shutdown()


@pytest.mark.services
def test_all_ports_of_local_spark_are_of_this_machine(spark: SparkSession) -> None:
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001
    process = psutil.Process(jvm.java.lang.ProcessHandle.current().pid())
    bound = {one.laddr.ip for one in process.net_connections("tcp") if one.status == psutil.CONN_LISTEN}
    assert bound <= {"127.0.0.1", "::ffff:127.0.0.1", "::1"}
    assert spark.sparkContext.uiWebUrl is None


_STARTED = """
import psutil
from dovetail.spark_jobs.runner.spark_session import start_session
session = start_session("secrets", [], "local[1]", conf={"spark.hadoop.fs.s3a.secret.key": "hunter2"})
assert session.sparkContext.getConf().get("spark.hadoop.fs.s3a.secret.key") == "hunter2"
for one in psutil.Process().children(recursive=True):
    if one.status() != psutil.STATUS_ZOMBIE:
        print(one.name(), "hunter2" in " ".join([*one.cmdline(), *one.environ().values()]))
"""


@pytest.mark.services
def test_no_command_line_has_a_secret() -> None:
    argv = [sys.executable, "-c", _STARTED]
    said = subprocess.run(argv, check=True, cwd=ROOT, capture_output=True, text=True, timeout=120).stdout
    assert "java False" in said
    assert "True" not in said
