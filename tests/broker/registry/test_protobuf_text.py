"""Schemas of Protobuf from strangers: neither their text nor the names of what they import is ever run."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from dovetail.broker.registry.protobuf_text import compiled, descriptors
from dovetail.broker.registry.protoc import ROOT_FILE, compiled_files
from dovetail.broker.registry.registered import SchemaNonsense, SchemaType, WholeSchema
from dovetail.changelog.encodings.interface import SchemaDefinition
from tests.broker.registry.hostile_imports import HOSTILE_NAMES, polyglot

SCHEMA = 'syntax="proto3"; message N {string a=1;}'


def test_the_polyglot_is_a_schema_and_a_program(tmp_path: Path) -> None:
    text = polyglot(tmp_path / "ran")
    found = descriptors(WholeSchema(SchemaType.PROTOBUF, text))
    assert [one.name for one in found.file[0].message_type] == ["M"]
    with pytest.raises(TypeError):
        exec(compile(text, "polyglot", "exec"), {})
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_what_a_schema_refers_to_is_not_run_by_its_reader(tmp_path: Path, name: str) -> None:
    mark = tmp_path / "ran"
    for text in (polyglot(mark), f"open({str(mark)!r}, 'w').write('x')"):
        assert compiled(SchemaDefinition("PROTOBUF", SCHEMA, ((name, SchemaDefinition("PROTOBUF", text)),))) == b""
    assert not mark.exists()


@pytest.mark.parametrize("name", ["grpc_tools/__init__.py", "sitecustomize.py", "encodings/__init__.py", "json.py"])
def test_protoc_runs_nothing_that_lies_among_its_files(tmp_path: Path, name: str) -> None:
    """The names are refused before; the process does not rely on that."""
    mark = tmp_path / "ran"
    found = compiled_files(SCHEMA, {name: polyglot(mark)})
    assert [one.name for one in found.file] == [ROOT_FILE]
    assert not mark.exists()


def test_protoc_hears_nothing_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark = tmp_path / "ran"
    (tmp_path / "sitecustomize.py").write_text(f"open({str(mark)!r}, 'w')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert len(compiled_files(SCHEMA, {}).file) == 1
    assert not mark.exists()


@pytest.mark.parametrize("name", ["a.proto", "a/b-c/D_1.proto", "google/type/date.proto", "x" * 249 + ".proto"])
def test_paths_of_imports_are_taken(name: str) -> None:
    text = f'syntax="proto3"; import "{name}"; message A {{ B b = 1; }}'
    referred = {name: 'syntax="proto3"; message B {}'}
    found = descriptors(WholeSchema(SchemaType.PROTOBUF, text, referred))
    assert [one.name for one in found.file] == [name, ROOT_FILE]


def test_imports_that_are_in_each_others_way_are_refused() -> None:
    referred = {"a.proto": SCHEMA, "a.proto/b.proto": SCHEMA}
    with pytest.raises(SchemaNonsense, match=r"b\.proto cannot be written"):
        descriptors(WholeSchema(SchemaType.PROTOBUF, SCHEMA, referred))


def test_a_stranger_does_not_replace_the_files_of_google(tmp_path: Path) -> None:
    stamp = "google/protobuf/timestamp.proto"
    text = f'syntax="proto3"; import "{stamp}"; message A {{ google.protobuf.Timestamp t = 1; }}'
    own = compiled_files(text, {})
    forged = compiled_files(
        text, {stamp: 'syntax="proto3"; package google.protobuf; message Timestamp { string x = 1; }'}
    )
    assert own == forged


def test_a_schema_that_wants_too_much_of_the_machine_is_refused() -> None:
    members = "".join(f"string a{number} = {number};" for number in range(1, 4000))
    nested = SCHEMA + "".join(f"message M{number} {{ {members} }}" for number in range(400))
    before = resource.getrlimit(resource.RLIMIT_AS)
    with pytest.raises(SchemaNonsense):
        compiled_files(nested, {})
    assert resource.getrlimit(resource.RLIMIT_AS) == before


def test_a_definition_is_what_protoc_makes_of_it() -> None:
    part = SchemaDefinition("PROTOBUF", 'syntax="proto3"; message B {}')
    whole = SchemaDefinition(
        "PROTOBUF", 'syntax="proto3"; import "b.proto"; message A { B b = 1; }', (("b.proto", part),)
    )
    assert [one.name for one in FileDescriptorSet.FromString(compiled(whole)).file] == ["b.proto", ROOT_FILE]
