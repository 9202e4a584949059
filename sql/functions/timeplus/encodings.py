"""Texts as other signs, and digests: hexadecimal, base 64, percent signs, MD5 and SHA.

Of the hashes only those are here that come out as ClickHouse's to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from dovetail.sql.functions.registry import Build, Row, Table, Unfit
from dovetail.sql.functions.typed import Typed, filled

_NOT_UTF8 = "NULL where the bytes are no UTF-8"
_CHECKED = (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&apos;", "''"), ("&amp;", "&"))
"""Entities of XML, the ampersand last."""


def _as_digits(letters: int, digits: str) -> Build:
    """Of a text or bytes each byte; of a whole number its bytes, those in front that are 0 left out."""

    def build(arguments: Sequence[Typed]) -> exp.Expr:
        (value,) = arguments
        if value.is_text or pa.types.is_binary(value.type):
            return filled(f"{digits}({{0}})", [value.tree])
        if not value.is_integer:
            raise Unfit(f"takes a text, bytes or a whole number, not a {value.family}")
        tree = value.tree
        if not value.is_unsigned:
            full = 1 << value.type.bit_width
            tree = filled(f"CASE WHEN {{0}} < 0 THEN CAST({{0}} AS HUGEINT) + {full} ELSE {{0}} END", [tree])
        shown = filled(f"{digits}(CAST({{0}} AS UBIGINT))", [tree])
        width = f"greatest((length({{0}}) + {letters - 1}) // {letters}, 1) * {letters}"
        return filled(f"lpad({{0}}, CAST({width} AS INTEGER), '0')", [shown])

    return build


def _escaped() -> str:
    tree = "{0}"
    for entity, sign in reversed(_CHECKED):
        tree = f"replace({tree}, '{sign}', '{entity}')"
    return tree


def _unescaped() -> str:
    tree = "{0}"
    for entity, sign in _CHECKED:
        tree = f"replace({tree}, '{entity}', '{sign}')"
    return tree


_DECODED = "decode(from_base64({0}))"
_DIGEST = ", in bytes: lower(hex(%s(x))) is its text"
_HALF = "CAST(CAST('0x' || substring(md5({0}), 1, 16) AS UBIGINT) AS UBIGINT)"

FUNCTIONS: Table = (
    Row("hex(x)", "in hexadecimal digits", _as_digits(2, "hex"), pa.string()),
    Row("bin(x)", "in binary digits", _as_digits(8, "bin"), pa.string()),
    Row("unhex(text)", "the text that hexadecimal digits stand for", "decode(unhex({0}))", pa.string(),
        differs=_NOT_UTF8),
    Row("unbin(text)", "the text that binary digits stand for", "decode(unbin({0}))", pa.string(), differs=_NOT_UTF8),
    Row("base64_encode(text)", "in base 64", "to_base64(encode({0}))", pa.string(), also="to_base64"),
    Row("base64_decode(text)", "from base 64", _DECODED, pa.string(), also="from_base64", differs=_NOT_UTF8),
    Row("try_base64_decode(text)", "from base 64; '' if it is not base 64",
        f"CASE WHEN {{0}} IS NOT NULL THEN coalesce(TRY({_DECODED}), '') END", pa.string()),
    Row("base64_url_encode(text)", "in base 64 with - and _, without =",
        "translate(to_base64(encode({0})), '+/=', '-_')", pa.string()),
    Row("base64_url_decode(text)", "from it",
        "decode(from_base64(rpad(translate({0}, '-_', '+/'), CAST((length({0}) + 3) // 4 * 4 AS INTEGER), '=')))",
        pa.string(), differs=_NOT_UTF8),
    Row("encode_url_component(text)", "with signs in %xx", "url_encode({0})", pa.string()),
    Row("decode_url_component(text)", "from %xx", "url_decode({0})", pa.string()),
    Row("encode_url_form_component(text)", "the same, + for a blank", "replace(url_encode({0}), '%20', '+')",
        pa.string()),
    Row("decode_url_form_component(text)", "from it", "url_decode(replace({0}, '+', '%20'))", pa.string()),
    Row("encode_xml_component(text)", "with <, >, &, quotes and apostrophes as entities", _escaped(), pa.string()),
    Row("decode_xml_component(text)", "from it", _unescaped(), pa.string(),
        differs="entities of numbers stay as they are"),
    Row("md5(text)", "the MD5 digest" + _DIGEST % "md5", "unhex(md5({0}))"),
    Row("sha1(text)", "the SHA-1 digest" + _DIGEST % "sha1", "unhex(sha1({0}))"),
    Row("sha256(text)", "the SHA-256 digest" + _DIGEST % "sha256", "unhex(sha256({0}))"),
    Row("half_md5(text)", "the first 8 bytes of the MD5 digest, as a number", _HALF, pa.uint64()),
)  # fmt: skip
