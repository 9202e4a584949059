"""Case files read and held against the format of tests/cases/README.md."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.conformance.case import (
    Case,
    CaseFault,
    Check,
    Delete,
    Expectation,
    Insert,
    Misfit,
    Mode,
    Pause,
    Restart,
    Row,
    Run,
    Source,
    Start,
    Step,
    Suite,
    Then,
    Update,
    Wait,
)


def load(folder: Path) -> Suite:
    """Every ``*.yaml`` below ``folder`` (or the one file that it is); ids are unique over all of them."""
    files = [folder] if folder.is_file() else sorted(folder.rglob("*.yaml"))
    if not files:
        raise CaseFault(f"no case files (*.yaml) in {folder}")
    suite, seen = Suite(), set[str]()
    for file in files:
        for number, entry in enumerate(_entries(file, suite), 1):
            _admit(entry, f"{file.name}#{number}", suite, seen)
    return suite


def read_yaml(file: Path) -> Any:
    """What a file holds; libyaml reads the cases ten times as fast as the parser in Python."""
    return yaml.load(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)


def _entries(file: Path, suite: Suite) -> list[Any]:
    try:
        entries = read_yaml(file)
    except yaml.YAMLError as fault:
        suite.misfits.append(Misfit(file.name, f"not YAML: {fault}"))
        return []
    if not isinstance(entries, list):
        suite.misfits.append(Misfit(file.name, "a file is one list of cases"))
        return []
    return entries


def _admit(entry: Any, place: str, suite: Suite, seen: set[str]) -> None:
    try:
        case = parse_case(entry)
        if case.id in seen:
            raise CaseFault("the id is taken by another case")
    except CaseFault as fault:
        name = entry.get("id", place) if isinstance(entry, dict) else place
        suite.misfits.append(Misfit(str(name), str(fault)))
        return
    seen.add(case.id)
    suite.cases.append(case)


def parse_case(entry: Any) -> Case:
    """One entry of a file as a case; raises ``CaseFault`` on anything that the format does not know."""
    fields = _mapping(entry, "a case")
    required = {"id", "origin", "feature", "tier", "ddl", "settings", "steps", "query", "expect"}
    _only(fields, required, {"tags", "may_refuse", "lookup_tables", "checks", "note"}, "a case")
    expected = _mapping(fields["expect"], "expect")
    return Case(
        id=str(fields["id"]),
        origin=str(fields["origin"]),
        feature=str(fields["feature"]),
        tier=int(fields["tier"]),
        ddl=tuple(fields["ddl"]),
        settings=_mapping(fields["settings"], "settings"),
        steps=tuple(parse_step(step, number) for number, step in enumerate(fields["steps"], 1)),
        query=str(fields["query"]),
        expect=_expectation(expected, len(fields["steps"])),
        tags=tuple(fields.get("tags") or ()),
        may_refuse=bool(fields.get("may_refuse", False)),
        lookup_tables=tuple(fields.get("lookup_tables") or ()),
        checks=tuple(_checks(fields.get("checks") or [], len(fields["steps"]))),
        then=tuple(_then(query) for query in expected.get("then") or ()),
        note=str(fields.get("note", "")),
    )


def parse_step(entry: Any, number: int) -> Step:
    step = _mapping(entry, f"step {number}")
    if len(step) != 1:
        raise CaseFault(f"step {number}: a step has one key")
    kind, body = next(iter(step.items()))
    if kind in ("insert", "delete", "update", "source"):
        return _input(kind, _mapping(body, f"step {number}"), f"step {number}")
    if kind in ("start", "restart") and body == "query":
        return Start() if kind == "start" else Restart()
    if kind == "run" and isinstance(body, str):
        return Run(body)
    if kind == "wait" and body in set(Wait):
        return Pause(Wait(body))
    raise CaseFault(f"step {number}: {kind}: {body} is no step")


def _input(kind: str, body: Mapping[str, Any], place: str) -> Step:
    if kind == "source":
        _only(body, {"table"}, {"rows", "delete"}, place)
        return Source(str(body["table"]), _rows(body.get("rows") or [], place), _rows(body.get("delete") or [], place))
    _only(body, {"table", "rows"}, set(), place)
    table = str(body["table"])
    if kind == "update":
        return Update(table, tuple(_pair(pair, place) for pair in body["rows"]))
    rows = _rows(body["rows"], place)
    return Insert(table, rows) if kind == "insert" else Delete(table, rows)


def _pair(entry: Any, place: str) -> tuple[Row, Row]:
    pair = _mapping(entry, place)
    _only(pair, {"old", "new"}, set(), place)
    old, new = _rows([pair["old"], pair["new"]], place)
    return old, new


def _expectation(fields: Mapping[str, Any], steps: int) -> Expectation:
    if fields.get("mode") not in set(Mode):
        raise CaseFault(f"expect: mode is one of {', '.join(Mode)}")
    mode = Mode(fields["mode"])
    if mode is Mode.ERROR:
        _only(fields, {"mode", "about"}, set(), "expect")
        return Expectation(mode, about=str(fields["about"]))
    optional = {"unmatched", "then"} | ({"key"} if mode is Mode.CHANGELOG else set())
    _only(fields, {"mode", "columns", "rows"}, optional, "expect")
    columns = tuple(fields["columns"])
    extra = {"_tp_delta", "_step"} if mode is Mode.CHANGELOG else set[str]()
    rows = _rows(fields["rows"], "expect", set(columns) | extra)
    if any(not 1 <= int(str(row["_step"])) <= steps for row in rows if extra):
        raise CaseFault("expect: _step counts the steps from 1")
    key = tuple(fields["key"]) if "key" in fields else None
    return Expectation(mode, columns, rows, key)


def _checks(entries: list[Any], steps: int) -> Iterator[Check]:
    for entry in entries:
        fields = _mapping(entry, "a check")
        _only(fields, {"after_step", "rows"}, set(), "a check")
        if not 1 <= fields["after_step"] <= steps:
            raise CaseFault(f"a check after step {fields['after_step']} of {steps}")
        yield Check(int(fields["after_step"]), _rows(fields["rows"], "a check"))


def _then(entry: Any) -> Then:
    fields = _mapping(entry, "then")
    _only(fields, {"query", "mode", "columns", "rows"}, set(), "then")
    columns = tuple(fields["columns"])
    return Then(str(fields["query"]), columns, _rows(fields["rows"], "then", set(columns)))


def _mapping(entry: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(entry, dict):
        raise CaseFault(f"{place}: a mapping, not {entry!r}")
    return entry


def _only(fields: Mapping[str, Any], required: set[str], optional: set[str], place: str) -> None:
    missing, unknown = required - set(fields), set(fields) - required - optional
    if missing or unknown:
        raise CaseFault(f"{place}: missing {sorted(missing)}, unknown {sorted(unknown)}")


def _rows(entries: Any, place: str, columns: set[str] | None = None) -> tuple[Row, ...]:
    rows = tuple({name: _plain(value) for name, value in _mapping(row, place).items()} for row in entries)
    for row in rows:
        if columns is not None and set(row) != columns:
            raise CaseFault(f"{place}: a row has exactly the columns {sorted(columns)}: {row}")
    return rows


def _plain(value: object) -> object:
    """An unquoted YAML time as the text that the format asks for."""
    if isinstance(value, dt.datetime):
        text = value.isoformat(" ")
        return text.rstrip("0").rstrip(".") if "." in text else text
    return value.isoformat() if isinstance(value, dt.date) else value
