"""A mapping seen through a prefix of its names."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import TypeVar

Value = TypeVar("Value")


class PartOfNames(MutableMapping[str, Value]):
    """What ``whole`` has under names that begin with ``prefix``, under the rest of the name; what is changed here is
    changed there.
    """

    def __init__(self, whole: MutableMapping[str, Value], prefix: str) -> None:
        self._whole, self._prefix = whole, prefix

    def __getitem__(self, name: str) -> Value:
        return self._whole[self._prefix + name]

    def __setitem__(self, name: str, value: Value) -> None:
        self._whole[self._prefix + name] = value

    def __delitem__(self, name: str) -> None:
        del self._whole[self._prefix + name]

    def __iter__(self) -> Iterator[str]:
        return (name.removeprefix(self._prefix) for name in list(self._whole) if name.startswith(self._prefix))

    def __len__(self) -> int:
        return sum(1 for _ in self)
