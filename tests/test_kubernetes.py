"""``docker/kubernetes.yml`` fits together, and what it starts is there. No cluster is asked."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from dovetail.runtime.settings import Settings
from dovetail.runtime.storage.spark_conf import read_conf
from dovetail.spark_jobs.runner.spark_security import SECURITY, expect_authenticated
from tests.paths import ROOT
from tests.test_compose import DOCKERFILE, SERVICES

MANIFEST = (ROOT / "docker" / "kubernetes.yml").read_text()
OBJECTS: dict[tuple[str, str], dict[str, Any]] = {
    (made["kind"], made["metadata"]["name"]): made for made in yaml.safe_load_all(MANIFEST)
}
POD = OBJECTS["Deployment", "dovetail-runner"]["spec"]["template"]
[RUNNER] = POD["spec"]["containers"]
GIVEN = {entry["name"]: entry.get("value") for entry in RUNNER["env"]}
EXECUTORS = {"spark-role": "executor"}
"""What Spark labels their pods with."""
EXECUTOR = ROOT / "docker" / "executor"


@pytest.fixture
def conf(tmp_path: Path) -> dict[str, str]:
    """The settings of Spark, as the runner reads them in the pod."""
    mounted = tmp_path / "spark.conf"
    mounted.write_text(OBJECTS["ConfigMap", "dovetail-spark"]["data"]["spark.conf"])
    value = GIVEN["DOVETAIL_SPARK_CONF"]
    assert value is not None
    return read_conf(value.replace("/etc/dovetail/spark.conf", str(mounted)).replace("$(HOSTNAME)", "pod-1"))


def ports(entries: list[dict[str, Any]], key: str) -> dict[str, int]:
    return {entry["name"]: entry[key] for entry in entries}


def test_no_object_is_declared_twice() -> None:
    assert len(OBJECTS) == MANIFEST.count("\nkind: ")


def test_what_it_names_is_declared() -> None:
    named = {("ServiceAccount", POD["spec"]["serviceAccountName"])}
    for volume in POD["spec"]["volumes"]:
        if "configMap" in volume:
            named.add(("ConfigMap", volume["configMap"]["name"]))
        else:
            named.add(("PersistentVolumeClaim", volume["persistentVolumeClaim"]["claimName"]))
    binding = OBJECTS["RoleBinding", "dovetail-runner"]
    named.add((binding["roleRef"]["kind"], binding["roleRef"]["name"]))
    named |= {(subject["kind"], subject["name"]) for subject in binding["subjects"]}
    assert named <= OBJECTS.keys()
    mounted = {mount["name"] for mount in RUNNER["volumeMounts"]}
    assert mounted == {volume["name"] for volume in POD["spec"]["volumes"]}


def test_settings_of_dovetail_and_of_spark_are_those_that_there_are(conf: dict[str, str]) -> None:
    known = {f"DOVETAIL_{name.upper()}" for name in Settings.model_fields}
    assert GIVEN.keys() - {"HOSTNAME"} <= known
    assert "spark.executor.instances" in conf
    cores = int(conf["spark.executor.instances"]) * int(conf["spark.executor.cores"])
    assert GIVEN["DOVETAIL_BUCKETS"] == str(cores)


def test_executors_find_the_runner_and_the_checkpoints(conf: dict[str, str]) -> None:
    service = OBJECTS["Service", conf["spark.driver.host"]]["spec"]
    assert service["clusterIP"] == "None"
    assert service["selector"] == POD["metadata"]["labels"]
    assert service["selector"] == OBJECTS["Deployment", "dovetail-runner"]["spec"]["selector"]["matchLabels"]
    configured = {"driver": int(conf["spark.driver.port"]), "blocks": int(conf["spark.driver.blockManager.port"])}
    assert ports(service["ports"], "port") == configured
    assert configured.items() < ports(RUNNER["ports"], "containerPort").items()
    volume = "spark.kubernetes.executor.volumes.persistentVolumeClaim.checkpoints."
    assert ("PersistentVolumeClaim", conf[f"{volume}options.claimName"]) in OBJECTS
    mounts = {mount["name"]: mount["mountPath"] for mount in RUNNER["volumeMounts"]}
    assert conf[f"{volume}mount.path"] == GIVEN["DOVETAIL_CHECKPOINT_DIR"] == mounts["checkpoints"]
    claim = OBJECTS["PersistentVolumeClaim", "dovetail-checkpoints"]["spec"]
    assert claim["accessModes"] == ["ReadWriteMany"]
    account = conf["spark.kubernetes.authenticate.executor.serviceAccountName"]
    assert ("ServiceAccount", account) in OBJECTS


def test_nobody_else_reaches_spark(conf: dict[str, str]) -> None:
    runner, executor = (OBJECTS["NetworkPolicy", f"dovetail-{name}"]["spec"] for name in ("runner", "executor"))
    assert runner["podSelector"]["matchLabels"] == POD["metadata"]["labels"]
    assert executor["podSelector"]["matchLabels"] == EXECUTORS
    assert runner["policyTypes"] == executor["policyTypes"] == ["Ingress"]
    reached = {port["port"]: rule["from"] for rule in runner["ingress"] for port in rule["ports"]}
    of_spark = [int(conf["spark.driver.port"]), int(conf["spark.driver.blockManager.port"])]
    assert [reached.pop(port) for port in of_spark] == [[{"podSelector": {"matchLabels": EXECUTORS}}]] * 2
    assert list(reached) == [ports(RUNNER["ports"], "containerPort")["health"]]
    [rule] = executor["ingress"]
    allowed = [one["podSelector"]["matchLabels"] for one in rule["from"]]
    assert allowed == [POD["metadata"]["labels"], EXECUTORS]


def test_spark_makes_the_secret_of_its_pods(conf: dict[str, str]) -> None:
    master = GIVEN["DOVETAIL_SPARK_MASTER"]
    assert master is not None
    expect_authenticated(SECURITY | conf, master)


def test_it_runs_the_image_of_the_stack_and_asks_it_where_it_answers(conf: dict[str, str]) -> None:
    assert RUNNER["image"] == conf["spark.kubernetes.container.image"] == SERVICES["spark"]["image"]
    assert RUNNER["command"] == SERVICES["spark"]["command"]
    assert find_spec(RUNNER["command"][-1]) is not None
    health = ports(RUNNER["ports"], "containerPort")["health"]
    assert health == Settings.model_fields["runner_port"].default
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        endpoint = RUNNER[probe]["httpGet"]
        assert (endpoint["path"], endpoint["port"]) in (("/healthz", "health"), ("/readyz", "health"))


def test_there_is_one_runner_and_no_password() -> None:
    deployed = OBJECTS["Deployment", "dovetail-runner"]["spec"]
    assert (deployed["replicas"], deployed["strategy"]) == (1, {"type": "Recreate"})
    assert [name for name, value in GIVEN.items() if "PASSWORD" in name and value is not None] == []


def test_the_image_has_the_word_by_which_spark_starts_executors(tmp_path: Path) -> None:
    """With Java in its place by a program that says how it was called."""
    assert "COPY docker/executor /usr/local/bin/executor" in DOCKERFILE
    for name, text in {"java": 'printf "%s\\n" "$@"', "python": f'exec "{sys.executable}" "$@"'}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    called = started(f"{tmp_path}:{os.environ['PATH']}")
    assert called.stderr == ""
    options, _, rest = called.stdout.partition("\n-cp\n")
    assert options.splitlines() == ["-Da=b c", "-De=f", "-Xms512m", "-Xmx512m"]
    assert list(Path(rest.splitlines()[0]).parent.glob("spark-kubernetes_*.jar"))


@pytest.mark.services
def test_spark_takes_what_an_executor_is_started_with() -> None:
    """It gets as far as to look for its runner, which is not there."""
    called = started(f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    assert called.returncode != 0
    assert "Failed to connect to /127.0.0.1:1" in called.stdout + called.stderr
    assert "Unrecognized options" not in called.stdout + called.stderr


def started(path: str) -> subprocess.CompletedProcess[str]:
    """With the variables that Spark gives to the pod of an executor."""
    given = {
        "PATH": path,
        "SPARK_JAVA_OPT_0": "-Da=b c",
        "SPARK_JAVA_OPT_1": "-De=f",
        "SPARK_EXECUTOR_MEMORY": "512m",
        "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@127.0.0.1:1",
        "SPARK_EXECUTOR_ID": "1",
        "SPARK_EXECUTOR_CORES": "1",
        "SPARK_APPLICATION_ID": "spark-1",
        "SPARK_EXECUTOR_POD_IP": "127.0.0.1",
        "SPARK_RESOURCE_PROFILE_ID": "0",
        "SPARK_EXECUTOR_POD_NAME": "pod-2",
    }
    return subprocess.run([EXECUTOR, "executor"], check=False, env=given, capture_output=True, text=True, timeout=120)
