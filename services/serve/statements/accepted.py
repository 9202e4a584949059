"""Which of its forms an answer has, by the header ``Accept``."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus

from starlette.requests import Request

from dovetail.services.serve.refusals import RequestRefused


def accepted(request: Request, forms: Sequence[str]) -> str:
    """The best of ``forms`` for whoever asks; of those they like alike, the first. Raises RequestRefused, 406."""
    ranges = [_range(part) for given in request.headers.getlist("accept") for part in given.split(",") if part.strip()]
    if not ranges:
        return forms[0]
    liked = {form: _quality(form, ranges) for form in forms}
    best = max(forms, key=lambda form: liked[form])
    if liked[best] > 0:
        return best
    raise RequestRefused(
        "the answer has no form that the request accepts",
        where="header Accept",
        fix=f"accept one of: {', '.join(forms)}",
        status=HTTPStatus.NOT_ACCEPTABLE,
    )


def _range(part: str) -> tuple[str, float]:
    """``application/*;q=0.5`` as its pattern and its weight; one that cannot be read weighs nothing."""
    pattern, *parameters = (word.strip().lower() for word in part.split(";"))
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return pattern, min(max(float(value), 0.0), 1.0)
            except ValueError:
                return pattern, 0.0
    return pattern, 1.0


def _quality(form: str, ranges: Sequence[tuple[str, float]]) -> float:
    """The weight that the most exact pattern gives."""
    for pattern in (form, f"{form.partition('/')[0]}/*", "*/*"):
        found = [weight for given, weight in ranges if given == pattern]
        if found:
            return max(found)
    return 0.0
