"""Texts as other signs, and digests: hexadecimal, base 64, percent signs, MD5 and SHA.

Of the hashes only those are here that come out as ClickHouse's to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pyarrow as pa
from sqlglot import exp

from dovetail.sql.functions.registry import Build, Registry, Unfit
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


_URL_SAFE = "translate(to_base64(encode({0})), '+/=', '-_')"
_FROM_URL_SAFE = "from_base64(rpad(translate({0}, '-_', '+/'), CAST((length({0}) + 3) // 4 * 4 AS INTEGER), '='))"
_PLUS = "replace(url_encode({0}), '%20', '+')"


def register(registry: Registry) -> None:
    add = partial(registry.add, group="encodings")
    of_text = partial(registry.add, kind=pa.string(), group="encodings")
    of_text("hex(x)", "in hexadecimal digits", _as_digits(2, "hex"), arity=(1, 1))
    of_text("bin(x)", "in binary digits", _as_digits(8, "bin"), arity=(1, 1))
    of_text("unhex(text)", "the text that hexadecimal digits stand for", "decode(unhex({0}))", differs=_NOT_UTF8)
    of_text("unbin(text)", "the text that binary digits stand for", "decode(unbin({0}))", differs=_NOT_UTF8)
    of_text("base64_encode(text)", "in base 64", "to_base64(encode({0}))", aliases="to_base64")
    decoded = "decode(from_base64({0}))"
    of_text("base64_decode(text)", "from base 64", decoded, aliases="from_base64", differs=_NOT_UTF8)
    tried = f"CASE WHEN {{0}} IS NOT NULL THEN coalesce(TRY({decoded}), '') END"
    of_text("try_base64_decode(text)", "from base 64; '' where it is none", tried)
    of_text("base64_url_encode(text)", "in base 64 with - and _, without =", _URL_SAFE)
    of_text("base64_url_decode(text)", "from it", f"decode({_FROM_URL_SAFE})", differs=_NOT_UTF8)
    of_text("encode_url_component(text)", "with signs in %xx", "url_encode({0})")
    of_text("decode_url_component(text)", "from %xx", "url_decode({0})")
    of_text("encode_url_form_component(text)", "the same, + for a blank", _PLUS)
    of_text("decode_url_form_component(text)", "from it", "url_decode(replace({0}, '+', '%20'))")
    of_text("encode_xml_component(text)", "with <, >, &, quotes and apostrophes as entities", _escaped())
    of_text("decode_xml_component(text)", "from it", _unescaped(), differs="entities of numbers stay as they are")
    for name, meaning in (("md5", "the MD5 digest"), ("sha1", "the SHA-1 digest"), ("sha256", "the SHA-256 digest")):
        add(f"{name}(text)", f"{meaning}, in bytes: lower(hex({name}(x))) is its text", f"unhex({name}({{0}}))")
    half = "CAST(CAST('0x' || substring(md5({0}), 1, 16) AS UBIGINT) AS UBIGINT)"
    add("half_md5(text)", "the first 8 bytes of the MD5 digest, as a number", half, pa.uint64())
