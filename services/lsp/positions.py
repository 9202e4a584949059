"""Places of a text as an editor counts them: lines, and units of an encoding within a line."""

from __future__ import annotations

import re
from bisect import bisect_right

from lsprotocol.types import Position, Range
from pygls.workspace import PositionCodec

_LINE_END = re.compile(r"\r\n|\n|\r")


class Lines:
    """``text`` by its lines. They end at CR, LF or both alone, as the protocol has it."""

    def __init__(self, text: str, codec: PositionCodec) -> None:
        self.text = text
        self._codec = codec
        self._starts = [0, *(found.end() for found in _LINE_END.finditer(text))]

    def range(self, start: int, end: int) -> Range:
        return Range(self.position(start), self.position(end))

    def position(self, offset: int) -> Position:
        line = bisect_right(self._starts, offset) - 1
        return Position(line, self._codec.client_num_units(self.text[self._starts[line] : offset]))

    def offset(self, position: Position) -> int:
        """The character at a position; the end of the line, or of the text, where that has no such place."""
        if position.line >= len(self._starts):
            return len(self.text)
        start = self._starts[position.line]
        ends = self._starts[position.line + 1 : position.line + 2] or [len(self.text)]
        units = 0
        for offset, letter in enumerate(self.text[start : ends[0]].rstrip("\r\n"), start):
            if units >= position.character:
                return offset
            units += self._codec.client_num_units(letter)
        return start + len(self.text[start : ends[0]].rstrip("\r\n"))
