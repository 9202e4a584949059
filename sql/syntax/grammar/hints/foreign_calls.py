"""Calls and columns of ksqlDB and Flink, and what says the same here."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.sql.syntax.grammar.hints.patterns import Piece, Table, table
from dovetail.sql.syntax.rules import Rules

_COLUMNS = {"ROWTIME": "_tp_time", "WINDOWSTART": "window_start", "WINDOWEND": "window_end"}
_NAMES = {
    "LATEST_BY_OFFSET": "latest",
    "EARLIEST_BY_OFFSET": "earliest",
    "COLLECT_LIST": "group_array",
    "COLLECT_SET": "group_uniq_array",
    "EXTRACTJSONFIELD": "json_value",
    "IFNULL": "if_null",
    "LEN": "length",
    "INSTR": "position",
    "LISTAGG": "string_agg",
}
"""Functions that have another name here, and the same arguments."""
_BOTH = (
    ("SPLIT ( {text} , {by} )", "split_by_string({by}, {text})"),
    ("REGEXP_SPLIT_TO_ARRAY ( {text} , {by} )", "split_by_regexp({by}, {text})"),
    ("TOPK ( {n} , {k} )", "max_k({n}, {k})"),
    ("TIMESTAMPTOSTRING ( {n} , {form} )", "FORMAT_TIMESTAMP({n:time}, {form})"),
    ("FROM_UNIXTIME ( {n} )", "FROM_UNIXTIME({n}, 'yyyy-MM-dd HH:mm:ss')"),
    ("FROM_UNIXTIME ( {n} , {form} )", "FORMAT_TIMESTAMP(TO_TIMESTAMP_LTZ({n}, 0), {form})"),
)
"""What a call is made of may be foreign in its turn."""
_STREAMS = (
    ("TOPKDISTINCT ( {n} , {k} )", "array_slice(array_reverse_sort(group_uniq_array({n})), 1, {k})"),
    ("STRINGTOTIMESTAMP ( {text} , {form} )", "to_unix_timestamp64_milli(PARSE_TIMESTAMP({text}, {form}))"),
    ("PARSE_TIMESTAMP ( {text} , {form} )", "parse_datetime({text}, {form:format_datetime})"),
    ("PARSE_TIMESTAMP ( {text} , {form} )", "parse_datetime64_best_effort({text}, 3)"),
    ("FORMAT_TIMESTAMP ( {t} , {form} )", "format_datetime({t}, {form:format_datetime})"),
    ("TO_TIMESTAMP_LTZ ( {n} , {digits} )", "from_unix_timestamp64_{digits:unit}({n})"),
)
_TABLES = (
    ("TOPKDISTINCT ( {n} , {k} )", "array_slice(array_reverse(array_sort(array_agg(DISTINCT {n}))), 1, {k})"),
    (
        "STRINGTOTIMESTAMP ( {text} , {form} )",
        "CAST(extract(epoch FROM PARSE_TIMESTAMP({text}, {form})) * 1000 AS BIGINT)",
    ),
    ("PARSE_TIMESTAMP ( {text} , {form} )", "to_timestamp({text}, {form:to_char})"),
    ("FORMAT_TIMESTAMP ( {t} , {form} )", "to_char({t}, {form:to_char})"),
    ("TO_TIMESTAMP_LTZ ( {n} , {digits} )", "to_timestamp({n}{digits:divided})"),
)


def _table(calls: tuple[tuple[str, str], ...]) -> Table:
    return table(
        [
            *(Piece(word, texts={"name": ours}, when="no call") for word, ours in _COLUMNS.items()),
            *(Piece(f"{word} (", texts={"name": ours}) for word, ours in _NAMES.items()),
            *(Piece(pattern, texts={"here": ours}) for pattern, ours in (*_BOTH, *calls)),
        ]
    )


CALLS: Mapping[Rules, Table] = {Rules.TIMEPLUS: _table(_STREAMS), Rules.RISINGWAVE: _table(_TABLES)}
