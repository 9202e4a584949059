"""The table of statements: a row for each kind, with a function that takes it."""

import inspect
from typing import get_args, get_type_hints

import pytest

from dovetail.services.session.context import Context
from dovetail.services.session.result import Result
from dovetail.services.session.statement_table import STATEMENTS
from dovetail.sql.syntax.statements import Statement


def test_each_kind_of_statement_has_a_row() -> None:
    assert set(STATEMENTS) == set(get_args(Statement))


@pytest.mark.parametrize("kind", STATEMENTS, ids=lambda kind: kind.__name__)
def test_the_function_of_a_row_takes_its_statement(kind: type[Statement]) -> None:
    carry_out = STATEMENTS[kind].resolve()
    context, statement, *further = inspect.signature(carry_out).parameters
    hints = get_type_hints(carry_out)
    assert (hints[context], hints[statement], further) == (Context, kind, [])
    results = get_args(hints["return"]) or (hints["return"],)
    assert set(results) <= set(get_args(Result))
