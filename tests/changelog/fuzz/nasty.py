"""What is put where a value is expected, and what becomes of good bytes."""

from __future__ import annotations

import random
from collections.abc import Iterator

LARGE = 600_000
"""Bytes, and more, of a value that is large; a topic takes a record of 1 MB."""

_SPELLINGS = r"""
1e-999999999 0e-999999999 -1E-3000000 1e-77 1e400 -1e400 1e999999999 1e99999999999999999999 1e-99999999999999999999
0e99999999999999999999 NaN nan Infinity -Infinity Inf inf - 0x10 1_000 +1 01 1. .5 -0 1e 18446744073709551616
-9223372036854775809 true TRUE null {} [] [null] [[[]]] {"a":{"a":1}} {"a":1,"a":2} [{"a":1e-3000000}]
{"a":"1e-3000000"} ["1e-999999999"] {"1e9":1} [1e400]
0001-01-01T00:00:00+23:59 9999-12-31T23:59:59-23:59 0000-00-00 9999-12-31 2026-02-30 24:00 10000-01-01 -0001-01-01
1677-09-21T00:12:43.1 2262-04-11T23:47:16.9 2026-01-31T12:00+99:99 99999999999999999999999
9223372036854775807 -99999999999999999999999 253402300800000 24:00:00 infinity -infinity 0000-12-31T23:59:59
\u0000 \ud800 \ud800\udc00 \u0065 1\u0065-3000000 1e\u002d3000000 \x ========= AAA \" \N
"""
_MADE = (
    *("", " ", " 2026-01-31 ", "\u0663", "2026-01-31 12:00:00." + "1" * 300, "2026-01-31T12:00:00Z" * 50),
    *("1" * 5_000, "-" + "9" * 77, "0." + "0" * 80 + "1", "0." + "1" * 2_000, "1" * 2_000 + "x", "1." * 500),
    *("[" * 5_000, "[" * 5_000 + "]" * 5_000, '{"a":' * 5_000 + "1" + "}" * 5_000),
)
_BYTES = b'\xff \xed\xa0\x80 \0 \xef\xbb\xbf1 "\xff" "\0" 1\n2 "a\nb" \xc0\x80 """'
_TEXTS = [text.encode() for text in (*_SPELLINGS.split(), *_MADE)]
SMALL = (*_TEXTS, *(b'"%s"' % text for text in _TEXTS), *_BYTES.split(b" "))
"""As they would stand in JSON, and each as a text too."""
_ONES = b"1" * LARGE
GREAT = (
    *(_ONES, b"-%s.5e-9" % _ONES, b"0.%s1" % (b"0" * LARGE), b"%sx" % _ONES, b'"%s"' % _ONES, b'"0.%s"' % _ONES),
    *(b'"2026-01-31 12:00:00.%s"' % _ONES, b'"%s"' % (b"\xc3\xa9" * (LARGE // 2)), b"\xff" * LARGE, b" " * LARGE),
    *(b"[" * 100_000, b"[" * 100_000 + b"]" * 100_000, b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
    *(b"[%s1]" % (b"1," * 200_000), b"{%s}" % b",".join([b'"a":1'] * 200_000), b'"%s"' % (b"\\u0031" * 100_000)),
    *(b"{%s}" % b",".join(b'"m%d":1' % n for n in range(90_000)), b'"%s"' % (b'\\"' * (LARGE // 2)), b'"' * LARGE),
)


def mutated(good: bytes, chance: random.Random) -> bytes:
    """``good`` with one to three things done to it."""
    for _ in range(chance.randint(1, 3)):
        place = chance.randrange(len(good) + 1)
        end = min(len(good), place + chance.choice((1, 1, 2, 8)))
        put = chance.choice(_PUT) if chance.random() < 0.5 else chance.randbytes(chance.choice((0, 1, 4)))
        good = good[:place] + put + good[end if chance.random() < 0.7 else place :]
    return good


_PUT = (
    b"",
    b"\xff" * 9 + b"\x01",
    b"\xff\xff\xff\xff\x0f",
    b"\x80",
    b"\0" * 8,
    b'"',
    b"{",
    b"]",
    b"e-3000000",
    b"\xed\xa0\x80",
    b",",
)
"""Among them the greatest and the least of lengths as Avro and Protobuf write them."""


def noise(chance: random.Random) -> Iterator[bytes]:
    """Bytes of nothing, of many lengths."""
    while True:
        yield chance.randbytes(chance.choice((0, 1, 2, 5, 6, 7, 20, 300)))
