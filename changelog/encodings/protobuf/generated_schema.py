"""The schema of an output, from its columns: every member may be absent, which is NULL.

integer                    int32, int64, uint32, uint64
float                      float, double
boolean, text, binary      bool, string, bytes
decimal, date, time        string, in digits
timestamp                  google.protobuf.Timestamp
list, map                  repeated, map; a NULL is an empty one, and an element is never NULL
struct                     a message within
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from google.protobuf.descriptor_pb2 import DescriptorProto

from dovetail.changelog.errors import SqlError
from dovetail.changelog.wording import type_words

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
TIMESTAMP_FILE = "google/protobuf/timestamp.proto"
_KEYS = ("string", "bool", "int32", "int64", "uint32", "uint64")


def message_name(name: str) -> str:
    """A stream's name as that of a message."""
    made = re.sub(r"^(?=[0-9])|[^A-Za-z0-9_]", "_", name)
    # A message beside the package of the same name would hide it.
    return f"{made}_" if made == "google" else made


def text_of(columns: pa.Schema, name: str, former: DescriptorProto | None = None) -> str:
    """The schema ``name`` as text. A member that ``former`` has keeps its number, and no number is given anew. Raises
    SqlError for a column that Protobuf has no form of.
    """
    made = _Message(message_name(name), {one.name for one in columns})
    numbers, gone = _numbers(columns.names, former)
    fields = [made.field(one.name, one.type, numbers[one.name], one.name) for one in columns]
    kept = [f"  reserved {', '.join(map(str, gone))};"] if gone else []
    return "\n".join(
        [
            'syntax = "proto3";',
            f'import "{TIMESTAMP_FILE}";',
            f"message {made.name} {{",
            *(f"  {line}" for line in made.within),
            *kept,
            *(f"  {line}" for line in fields),
            "}",
            "",
        ]
    )


def _numbers(names: Iterable[str], former: DescriptorProto | None) -> tuple[Mapping[str, int], list[int]]:
    """The number of each member, and those that no other may have."""
    before = {} if former is None else {one.name: one.number for one in former.field}
    gone = (
        set() if former is None else {number for one in former.reserved_range for number in range(one.start, one.end)}
    )
    numbers: dict[str, int] = {}
    last = max([0, *before.values(), *gone])
    for name in names:
        number = before.get(name)
        if number is None:
            last += 1
            number = last
        numbers[name] = number
    gone |= {number for name, number in before.items() if name not in numbers}
    return numbers, sorted(gone)


@dataclass
class _Message:
    """Members, and the messages that stand within."""

    name: str
    taken: set[str]
    within: list[str] = field(default_factory=list)

    def field(self, name: str, kind: pa.DataType, number: int, column: str) -> str:
        if _NAME.fullmatch(name) is None:
            raise SqlError(
                f'"{name}" cannot be the name of a member in Protobuf',
                where=f"column {column}",
                fix="name it AS letters, digits and underscores",
            )
        if pa.types.is_map(kind):
            key = _scalar(kind.key_type)
            if key not in _KEYS:
                raise _unfit(kind, column)
            return f"map<{key}, {self._type(kind.item_type, column)}> {name} = {number};"
        if pa.types.is_list(kind):
            return f"repeated {self._type(kind.value_type, column)} {name} = {number};"
        return f"optional {self._type(kind, column)} {name} = {number};"

    def _type(self, kind: pa.DataType, column: str) -> str:
        if pa.types.is_struct(kind):
            return self._struct(kind, column)
        found = _scalar(kind)
        if found is None:
            raise _unfit(kind, column)
        return found

    def _struct(self, kind: pa.DataType, column: str) -> str:
        number = 1
        while f"Record{number}" in self.taken:
            number += 1
        name = f"Record{number}"
        self.taken.add(name)
        inner = [self.field(one.name, one.type, place, column) for place, one in enumerate(kind, 1)]
        self.within += [f"message {name} {{", *(f"  {line}" for line in inner), "}"]
        return f".{self.name}.{name}"


def _unfit(kind: pa.DataType, column: str) -> SqlError:
    return SqlError(f"{type_words(kind)} has no form in Protobuf", where=f"column {column}", fix="cast it to text")


def _scalar(kind: pa.DataType) -> str | None:
    if pa.types.is_timestamp(kind):
        return ".google.protobuf.Timestamp"
    if pa.types.is_integer(kind):
        sign, wide = "" if pa.types.is_signed_integer(kind) else "u", 64 if kind.bit_width == 64 else 32
        return f"{sign}int{wide}"
    if pa.types.is_decimal(kind) or pa.types.is_date32(kind) or pa.types.is_time(kind):
        return "string"
    plain = {
        pa.bool_(): "bool",
        pa.float32(): "float",
        pa.float64(): "double",
        pa.string(): "string",
        pa.large_string(): "string",
        pa.binary(): "bytes",
        pa.large_binary(): "bytes",
    }
    return plain.get(kind)
