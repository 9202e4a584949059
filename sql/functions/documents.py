"""JSON documents as values: texts in the one form of ``jsonb``, equal where the documents are."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import SqlError
from dovetail.sql.expressions.python_functions import PythonFunction
from dovetail.sql.functions.typed import Typed

JSON = pa.json_(pa.string())
"""A JSON document, which the engine keeps as a text."""

_JSONB = PythonFunction(
    "jsonb",
    (pa.string(),),
    pa.string(),
    "from dovetail.changelog.formats.text_forms import jsonb_texts as jsonb",
)


def no_document(text: str) -> SqlError:
    return SqlError(f"'{text}' is not a JSON document", fix="names and strings are written in double quotes")


def in_one_form(value: Typed) -> Typed:
    """A value that is compared, grouped by or kept. Columns and literals are in the one form since they were read;
    parts of documents, and what is made of texts, get it where it matters.
    """
    if value.known_type != JSON or isinstance(value.tree, exp.Column | exp.Literal):
        return value
    return value.of(_JSONB.over([value.tree]), JSON)
