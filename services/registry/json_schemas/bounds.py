"""Constraints that hold no schemas: what the reader's say of values that keep to the writer's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from dovetail.services.registry.json_schemas.parts import Plain

_LEAST = {"string": ("minLength",), "array": ("minItems",), "object": ("minProperties",)}
_MOST = {"string": ("maxLength",), "array": ("maxItems",), "object": ("maxProperties",)}


def unbounded(kind: str, reader: Plain, writer: Plain) -> Iterator[str]:
    """Of values of ``kind``, why one that the writer's constraints take is not taken by the reader's."""
    read, written = reader.words, writer.words
    for word in _LEAST.get(kind, ()):
        if _number(read, word, 0) > _number(written, word, 0):
            yield f"{word} is {written.get(word, 0)} where it is written and {read[word]} where it is read"
    for word in _MOST.get(kind, ()):
        if word in read and (word not in written or _number(written, word, 0) > _number(read, word, 0)):
            yield f"{word} is {written.get(word, 'none')} where it is written and {read[word]} where it is read"
    if kind == "string" and "pattern" in read and read["pattern"] != written.get("pattern"):
        yield f"the pattern {read['pattern']!r} is asked for where it is read"
    if kind == "array" and read.get("uniqueItems") and not written.get("uniqueItems"):
        yield "uniqueItems is asked for where it is read"
    if kind == "number":
        yield from _unbounded_numbers(reader, writer)


def _unbounded_numbers(reader: Plain, writer: Plain) -> Iterator[str]:
    for side, word in ((-1, "minimum"), (1, "maximum")):
        read, written = (_end(words, word, side) for words in (reader.words, writer.words))
        # The end itself is out where it is exclusive, so an exclusive end is the nearer one.
        if read is not None and (written is None or written > read):
            yield f"the {word} is nearer where it is read"
    step = reader.words.get("multipleOf")
    given_step = writer.words.get("multipleOf", 1 if writer.kind == "integer" else None)
    if step is not None and (given_step is None or _exact(given_step) % _exact(step) != 0):
        yield f"multiples of {step} are read"


def _end(words: Mapping[str, Any], word: str, side: int) -> tuple[Fraction, bool] | None:
    """The nearest end on a side, and whether it is part of what is taken; greater is farther. Up to draft 4
    ``exclusiveMaximum`` is said of ``maximum``.
    """
    exclusive = words.get(f"exclusive{word.capitalize()}")
    ends = []
    if word in words:
        ends.append((side * _exact(words[word]), exclusive is not True))
    if exclusive is not None and not isinstance(exclusive, bool):
        ends.append((side * _exact(exclusive), False))
    return min(ends, default=None)


def _number(words: Mapping[str, Any], word: str, absent: int) -> Fraction:
    return _exact(words.get(word, absent))


def _exact(number: Any) -> Fraction:
    return Fraction(str(number))
