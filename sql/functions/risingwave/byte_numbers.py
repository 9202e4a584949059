"""Numbers as bytes, the most significant first, and checksums of bytes."""

from __future__ import annotations

from dovetail.sql.functions.registry import Row, Table
from dovetail.sql.functions.risingwave.values.kinds import BIG, BYTES

_SENT = "unhex(right(lpad(hex(CAST({{0}} AS BIGINT)), 16, '0'), {digits}))"
_READ = "CAST('0x' || hex({0}) AS UBIGINT)"
_RECEIVED = (
    f"CASE WHEN octet_length({{0}}) = 8 THEN CASE WHEN hex({{0}}) < '8' THEN CAST({_READ} AS BIGINT) "
    f"ELSE CAST(CAST({_READ} AS HUGEINT) - 18446744073709551616 AS BIGINT) END END"
)
_ALL_BITS = 0xFFFFFFFF


def _crc(polynomial: int) -> str:
    """By halves of bytes, with a table of sixteen remainders."""
    remainders = ", ".join(str(_remainder(half, polynomial)) for half in range(16))

    def shifted(crc: str) -> str:
        return f"xor(({crc}) >> 4, list_extract([{remainders}], (({crc}) & 15) + 1))"

    bytes_of = "list_transform(regexp_extract_all(hex({0}), '..'), lambda b_: CAST('0x' || b_ AS BIGINT))"
    step = shifted(shifted("xor(c_, b_)"))
    return (
        f"xor(list_reduce({bytes_of}, lambda c_, b_: {step}, CAST({_ALL_BITS} AS BIGINT)), CAST({_ALL_BITS} AS BIGINT))"
    )


def _remainder(bits: int, polynomial: int) -> int:
    for _ in range(4):
        bits = (bits >> 1) ^ (polynomial if bits & 1 else 0)
    return bits


def _sent(width: int) -> Row:
    shown = _SENT.format(digits=2 * width)
    return Row(f"int{width}send(n)", f"its {width} bytes", shown, BYTES, takes="int" if width < 8 else "bigint")


FUNCTIONS: Table = (
    _sent(4),
    _sent(8),
    Row("int8recv(bytes)", "the integer of eight bytes", _RECEIVED, BIG, takes="bytes"),
    Row("crc32(bytes)", "the checksum CRC-32", _crc(0xEDB88320), BIG, takes="bytes"),
    Row("crc32c(bytes)", "the checksum CRC-32C", _crc(0x82F63B78), BIG, takes="bytes"),
)
