"""Records are decoded alone and among good ones, in a process that may end: its parent names the record then.

The time is that of the processor, so that a busy machine is no fault; a record that never ends is ended by a signal.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import Connection
from typing import Any, BinaryIO

from dovetail.changelog.dead_letter import to_dead_letters
from dovetail.changelog.decode import Decoded, Decoder
from dovetail.changelog.encode import encode
from dovetail.changelog.errors import REASON_BYTES
from tests.changelog.fuzz.streams import GROUPS, NastyStream, Record
from tests.changelog.records import records

LONGEST_S = 1.0
"""Of one record, in each of the two ways."""
_ENDED_S = 20.0
_PARSER_OF_AVRO = b"polars-arrow/src/io/avro"
_CONTEXT = multiprocessing.get_context("spawn")


@dataclass(frozen=True)
class Fault:
    """``number``: of the record among those of its stream."""

    stream: str
    number: int
    record: str
    what: str

    def __str__(self) -> str:
        return f"{self.stream}, record {self.number} {self.record}: {self.what}"


@dataclass(frozen=True)
class Rounds:
    """Which records of each stream of the group: see ``NastyStream.records``."""

    group: str
    seed: int
    count: int
    share: float = 1.0

    def __iter__(self) -> Iterator[tuple[NastyStream, int, Record]]:
        for number, stream in enumerate(GROUPS[self.group]()):
            for at, record in enumerate(stream.records(random.Random(self.seed + number), self.count, self.share)):
                yield stream, at, record


def faults(rounds: Rounds) -> list[Fault]:
    """Those of all; after a record that ends the process the next one goes on in another."""
    found: list[Fault] = []
    begin = 0
    while True:
        reached = _CONTEXT.Value("q", begin)
        receiver, sender = _CONTEXT.Pipe(duplex=False)
        child = _CONTEXT.Process(target=_run, args=(rounds, begin, reached, sender), daemon=True)
        child.start()
        sender.close()
        found += _received(receiver)
        child.join()
        if child.exitcode == 0:
            return found
        stream, at, record = next(islice(rounds, reached.value, None))
        found.append(Fault(stream.name, at, _shown(record), f"the process ended: {_ending(child.exitcode)}"))
        begin = reached.value + 1


def _received(receiver: Connection) -> Iterator[Fault]:
    while True:
        try:
            yield receiver.recv()
        except EOFError:
            return


def _ending(code: int | None) -> str:
    return signal.Signals(-code).name if code is not None and code < 0 else f"code {code}"


def _run(rounds: Rounds, begin: int, reached: Any, sender: Connection) -> None:
    with tempfile.TemporaryFile() as said:
        os.dup2(said.fileno(), sys.stderr.fileno())
        for number, (stream, at, record) in enumerate(rounds):
            if number < begin:
                continue
            reached.value = number
            for what in (*_wrong(stream, record), *_said(said)):
                sender.send(Fault(stream.name, at, _shown(record), what))


def _said(said: BinaryIO) -> Iterator[str]:
    """What was written to stderr since. Of bytes that are no Avro the parser of batches says so there, whatever is done
    with its error.
    """
    if said.seek(0, os.SEEK_END):
        said.seek(0)
        output = said.read()
        said.seek(0)
        said.truncate()
        if _PARSER_OF_AVRO not in output:
            yield f"it wrote {output[:200]!r}"


def _wrong(stream: NastyStream, record: Record) -> Iterator[str]:
    for way, batch in (("alone", [record]), ("in a batch", [stream.good, record, stream.good])):
        signal.setitimer(signal.ITIMER_PROF, _ENDED_S)
        begun_s = time.process_time()
        try:
            yield from (f"{what}, {way}" for what in _misread(stream.decoder, batch, singly=way == "alone"))
        except BaseException as fault:  # noqa: BLE001 - whatever it is, it is no dead letter
            yield f"{type(fault).__name__}: {str(fault)[:200]}, {way}"
        signal.setitimer(signal.ITIMER_PROF, 0)
        if time.process_time() - begun_s > LONGEST_S:
            yield f"it took {time.process_time() - begun_s:.1f} s, {way}"


def _misread(decoder: Decoder, batch: list[Record], *, singly: bool) -> Iterator[str]:
    keys, values = ([record[part] for record in batch] for part in (0, 1))
    given = records(values, keys)
    decoded: Decoded = decoder.decode_singly(given) if singly else decoder.decode(given)
    encode(decoded.rows, decoder.columns, (), updating=False)
    if decoded.rows.num_rows < len(batch) - 1:
        yield "a good record is lost"
    for dead_letter in to_dead_letters(decoded.rejected, topic="t", query="q"):
        if len(dict(dead_letter.headers)["dovetail.reason"]) > REASON_BYTES:
            yield "its reason is too long"


def _shown(record: Record) -> str:
    return str(tuple(part if part is None or len(part) <= 80 else part[:60] + b"..%d" % len(part) for part in record))
