"""Functions in Python, as the engine calls them: loaded once for each thread, and held to what they declare."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import duckdb
import pyarrow as pa
from duckdb.func import FunctionNullHandling, PythonUDFType

from dovetail.changelog.errors import FunctionFault
from dovetail.changelog.wording import counted, type_words
from dovetail.sql.expressions.engine import type_name
from dovetail.sql.expressions.python_functions import PythonFunction, called_in

_local = threading.local()


def provide(session: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Let ``session``, which is this thread's own, know the functions that ``sql`` calls."""
    provided: set[str] = _local.__dict__.setdefault("provided", set())
    for function in called_in(sql):
        if function.call not in provided:
            session.create_function(
                function.call,
                PythonCall(function),
                [type_name(kind) for kind in function.takes],
                type_name(function.gives),
                type=PythonUDFType.ARROW,
                null_handling=FunctionNullHandling.SPECIAL,
                side_effects=function.volatile,
            )
            provided.add(function.call)


def raise_broken() -> None:
    """Raises the FunctionFault of a call since the last one. The engine itself tells an error by its text, or takes it
    for that of a value.
    """
    fault: FunctionFault | None = _local.__dict__.pop("fault", None)
    if fault is not None:
        raise fault


class PythonCall:
    """Takes the columns of some rows, and gives the column of the function's values.

    An exception of the function is one of a value: the engine asks for the rows one by one then, and those that fail
    are NULL. What cannot be the column of its declaration is a FunctionFault, as is code that cannot be loaded.
    """

    def __init__(self, function: PythonFunction) -> None:
        self._function = function
        self._loaded: Callable[..., object] | None = None
        places = [
            inspect.Parameter(f"column{place}", inspect.Parameter.POSITIONAL_ONLY)
            for place in range(len(function.takes))
        ]
        # The engine counts them.
        self.__signature__ = inspect.Signature(places)

    def __call__(self, *columns: pa.ChunkedArray) -> pa.Array:
        if self._loaded is None:
            self._loaded = self._load()
        pairs = zip(columns, self._function.takes, strict=True)
        result = self._loaded(*(_whole(column.cast(kind)) for column, kind in pairs))
        return self._checked(result, len(columns[0]))

    def _load(self) -> Callable[..., object]:
        function = self._function
        defined: dict[str, Any] = {"__name__": function.name}
        try:
            exec(compile(function.body, f"<function {function.name}>", "exec", dont_inherit=True), defined)
        except Exception as fault:  # noqa: BLE001 whatever the code of a user raises
            self._break(
                f"cannot be loaded: {type(fault).__name__}: {fault}", "install what it imports on every machine"
            )
        named = (one for name, one in defined.items() if name.lower() == function.name)
        found: Callable[..., object] | None = next(filter(callable, named), None)
        if found is None:
            self._break("is not what its body defines", f"def {function.name}(..): in the body")
        return found

    def _checked(self, result: object, rows: int) -> pa.Array:
        array, declared = self._array(result), self._function.gives
        if len(array) != rows:
            self._break(
                f"gives {counted(len(array), 'value')} for {counted(rows, 'row')}",
                "one value for each row, None for a missing one",
            )
        if not _fits(array.type, declared):
            self._break(f"gives {type_words(array.type)}, and is declared to give {declared}", "RETURNS what it gives")
        return array if array.type == declared else array.cast(declared)

    def _array(self, result: object) -> pa.Array:
        if isinstance(result, pa.Array | pa.ChunkedArray):
            return _decoded(_whole(result))
        if isinstance(result, str | bytes | dict) or not isinstance(result, Iterable):
            self._break(f"gives one {type(result).__name__}, and no column", "an Array, with one value for each row")
        try:
            return _decoded(_whole(pa.array(result)))
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError) as fault:
            self._break(f"gives what is no column: {fault}", "values of one type, or None")

    def _break(self, what: str, fix: str) -> NoReturn:
        fault = FunctionFault(f"the function {self._function.name}() {what}", where="its Python", fix=fix)
        # The first one tells most: after it the engine may ask again, row by row.
        _local.__dict__.setdefault("fault", fault)
        raise fault


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) and column.chunks else column


def _decoded(array: pa.Array) -> pa.Array:
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _fits(given: pa.DataType, declared: pa.DataType) -> bool:
    """Whether values of one type are those of the other, but for their size."""
    if pa.types.is_null(given) or given == declared:
        return True
    if _is_list(given) and _is_list(declared):
        return _fits(given.value_type, declared.value_type)
    return any(is_one(given) and is_one(declared) for is_one in _FAMILIES)


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


_FAMILIES = (_is_number, _is_text, _is_bytes, pa.types.is_timestamp, pa.types.is_date, pa.types.is_time)
