"""Which schemas of Protobuf may follow others, and that those which may read each other's values."""

from __future__ import annotations

import pytest

from dovetail.broker.registry.registered import SchemaType, WholeSchema
from dovetail.services.registry.compatibility import Level, objections

HEAD = 'syntax = "proto3";\n'
ENUM = "enum E { none = 0; one = 1; }"
MEMBERS = "int64 id = 1; optional string note = 2; repeated E e = 3; message In { bool b = 1; }"
BASE = f"{HEAD}message M {{ {MEMBERS} }} {ENUM}"


def whole(text: str) -> WholeSchema:
    return WholeSchema(SchemaType.PROTOBUF, text)


@pytest.mark.parametrize("level", [level for level in Level if level is not Level.NONE])
@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (BASE, BASE.replace("int64 id", "/* same */ int64 id"), ""),
        (BASE, BASE.replace("id = 1;", "id = 1; double more = 9;"), ""),
        (BASE, BASE.replace("optional string note = 2;", "reserved 2;"), ""),
        (BASE, BASE.replace("one = 1;", "one = 1; two = 2;"), ""),
        (BASE, f"{BASE} message Other {{ }}", ""),
        (BASE, BASE.replace("int64 id", "sint64 id"), "member 1 of M was id and is id, or of another type"),
        (BASE, BASE.replace("int64 id", "int64 ident"), "was id and is ident"),
        (BASE, BASE.replace("optional string note", "string note"), "member 2 of M"),
        (BASE, BASE.replace("repeated E", "E"), "member 3 of M"),
        (BASE, BASE.replace("id = 1", "id = 7"), "member id of M had the number 1"),
        (BASE, BASE.replace("bool b", "bytes b"), "member 1 of M.In"),
        (BASE, BASE.replace("one = 1", "uno = 1"), "one = 1 of enum E is gone"),
        (BASE, BASE.replace("message M", "message N"), "message M is gone"),
        (BASE, BASE.replace(HEAD, f"{HEAD}message First {{ }}"), "message M is gone, or stands elsewhere"),
        (BASE, BASE.replace(HEAD, f"{HEAD}package p;"), "the package was"),
        (BASE, BASE.replace("int64 id = 1;", "oneof o { int64 id = 1; }"), "member 1 of M"),
        (
            'syntax = "proto2"; message M { }',
            'syntax = "proto2"; message M { optional int32 a = 1; }',
            "other syntaxes",
        ),
    ],
)
def test_what_may_follow(level: Level, before: str, after: str, said: str) -> None:
    found = objections(whole(after), [whole(before)], level)
    assert bool(found) == bool(said)
    assert said in " ".join(found)
