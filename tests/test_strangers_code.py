"""Nothing that a stranger sends is run as code: every place that could is listed here, with why it may.

Read from the source of all rooms. A process that is started has the arguments of a list, never a shell; an interpreter
of Python finds its modules among those that are installed or in Dovetail's own folder, never where it happens to be.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

import pytest

from tests.paths import ROOT
from tests.test_layers import PRESENT, sources

STARTS = {"subprocess.run", "subprocess.Popen", "subprocess.call", "subprocess.check_call", "subprocess.check_output"}
SHELLS = (
    "os.system",
    "os.popen",
    "subprocess.getoutput",
    "subprocess.getstatusoutput",
    "asyncio.create_subprocess_shell",
)
REPLACING = ("os.exec", "os.spawn", "os.posix_spawn", "asyncio.create_subprocess_exec", "multiprocessing.", "pty.")
READING = (
    *("pickle.load", "pickle.Unpickler", "cloudpickle.load", "dill.load", "marshal.load", "shelve.open", "joblib.load"),
    *(
        "yaml.load",
        "yaml.unsafe_load",
        "yaml.full_load",
        "pandas.read_pickle",
        "pd.read_pickle",
        "numpy.load",
        "np.load",
    ),
    *("eval", "exec", "compile", "__import__", "importlib.import_module", "runpy.", "code.interact"),
)

_CALLS_OF_PYTHON = "sql/expressions/engine_calls/python_calls.py"
MAY_READ = {
    (_CALLS_OF_PYTHON, "exec"): "CREATE FUNCTION of an admin, unless DOVETAIL_PYTHON_FUNCTIONS is off",
    (_CALLS_OF_PYTHON, "compile"): "the same",
    ("spark_jobs/stages/job.py", "pickle.loads"): "from Spark's driver, which has the secret of this start",
    ("runtime/processes/fork_server.py", "importlib.import_module"): "names that its owner gives in the code",
    ("runtime/processes/fork_server.py", "runpy.run_module"): "asked over a socket that its user alone may write to",
    ("spark_jobs/daemon.py", "importlib.import_module"): "a list that stands beside it",
    ("dovetail/__init__.py", "importlib.import_module"): "the same",
}
MAY_REPLACE = {
    ("spark_jobs/forward.py", "os.execv"): "with the arguments that Spark gave to this process",
    ("services/cli/forked/command.py", "os.execv"): "with -P: the folder that the command is about is not searched",
}
NO_PYTHON = {
    "runtime/java.py": "java -version",
    "services/jars.py": "Ivy, in Java",
    "services/stack/servers/kafka.py": "Kafka's tool for its storage, in Java",
}
"""Files whose processes are no interpreters of Python."""

Call = tuple[str, str, ast.Call]


def calls(file: str, text: str) -> Iterator[Call]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            yield file, ast.unparse(node.func), node


@cache
def all_calls() -> list[Call]:
    paths = [path for layer in PRESENT for path in sources(layer)]
    return [one for path in paths for one in calls(str(path.relative_to(ROOT)), path.read_text())]


def unlisted(found: list[Call], kinds: tuple[str, ...], listed: dict[tuple[str, str], str]) -> list[str]:
    return [
        f"{file}:{node.lineno} {name}"
        for file, name, node in found
        if (name in kinds or name.startswith(tuple(kind for kind in kinds if "." in kind)))
        and (file, name) not in listed
    ]


def astray(found: list[Call]) -> list[str]:
    """Processes that are started where Python could take a stranger's file for a module."""
    starts = [one for one in found if one[1] in STARTS and one[0] not in NO_PYTHON]
    return [f"{file}:{node.lineno} {name}" for file, name, node in starts if not (_isolated(node) or _at_home(node))]


def _isolated(node: ast.Call) -> bool:
    given = node.args[0]
    values = {one.value for one in getattr(given, "elts", []) if isinstance(one, ast.Constant)}
    return bool({"-I", "-P"} & values)


def _at_home(node: ast.Call) -> bool:
    return any(one.arg == "cwd" and ast.unparse(one.value) == "PACKAGE_ROOT" for one in node.keywords)


def with_shell(found: list[Call]) -> list[str]:
    return [f"{file}:{node.lineno}" for file, _, node in found if any(one.arg == "shell" for one in node.keywords)]


def test_no_process_is_started_by_a_shell() -> None:
    found = all_calls()
    assert with_shell(found) == unlisted(found, SHELLS, {}) == []


def test_an_interpreter_is_isolated_or_begins_in_a_folder_of_its_own() -> None:
    found = all_calls()
    assert astray(found) == unlisted(found, REPLACING, MAY_REPLACE) == []


def test_what_is_read_is_not_run() -> None:
    assert unlisted(all_calls(), READING, MAY_READ) == []


def test_the_lists_hold_what_is_there() -> None:
    there = {(file, name) for file, name, _ in all_calls()}
    assert {*MAY_READ, *MAY_REPLACE} <= there
    assert set(NO_PYTHON) <= {file for file, name in there if name in STARTS}


@pytest.mark.parametrize("file", sorted(NO_PYTHON))
def test_what_is_said_to_start_no_python_names_none(file: str) -> None:
    assert "sys.executable" not in (ROOT / file).read_text()


@pytest.mark.parametrize(
    "text",
    [
        "subprocess.run([sys.executable, '-m', 'x'], cwd=folder)",
        "subprocess.Popen(argv)",
        "subprocess.run('x', shell=True, cwd=PACKAGE_ROOT)",
        "os.system('x')",
        "os.execv(sys.executable, arguments)",
        "pickle.loads(record)",
        "yaml.load(text)",
        "eval(text)",
        "importlib.import_module(name)",
    ],
)
def test_the_rules_see_what_they_forbid(text: str) -> None:
    found = list(calls("x.py", text))
    assert with_shell(found) or astray(found) or unlisted(found, (*SHELLS, *REPLACING, *READING), {})


def test_the_rules_take_what_is_in_order() -> None:
    fine = "subprocess.run([sys.executable, '-I', 'x'])\nsubprocess.run(argv, cwd=PACKAGE_ROOT)\nre.compile(text)"
    found = list(calls("x.py", fine))
    assert with_shell(found) == astray(found) == unlisted(found, (*SHELLS, *REPLACING, *READING), {}) == []
