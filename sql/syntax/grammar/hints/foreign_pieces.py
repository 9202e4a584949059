"""Pieces of queries that only ksqlDB, Flink and Timeplus have, and what is written in their place here."""

from __future__ import annotations

from dovetail.sql.syntax.grammar.hints.patterns import Piece, table

_LATE = "SETTINGS watermark_delay says how late rows may be"
_FINAL = "AFTER WINDOW CLOSE WITH DELAY {grace:interval}"
_WINDOWS = (
    ("HOPPING", "SIZE {size} , ADVANCE BY {step}", "hop({source}, {step:interval}, {size:interval}){as}"),
    ("HOPPING", "SIZE {size}", "hop({source}, {size:interval}, {size:interval}){as}"),
    ("TUMBLING", "SIZE {size}", "tumble({source}, {size:interval}){as}"),
    ("SESSION", "{size}", "session({source}, {size:interval}){as}"),
)
_NEAR = (
    " AND {right}._tp_time BETWEEN {left}._tp_time - {before:interval} AND {left}._tp_time + {after:interval}",
    " AND {right}._tp_time BETWEEN {left}._tp_time - {near:interval} AND {left}._tp_time + {near:interval}",
)
_OF_LAST = "EMIT LAST is of Timeplus: groups of the last rows are groups of windows"
_CUMULATED = "a window of the whole size, whose rows are updated as it fills"

PIECES = table(
    [
        *(
            Piece(
                f"WINDOW {kind} ( {lengths} [, RETENTION {{kept}}] {grace})",
                f"WINDOW {kind} is of ksqlDB: windows are of a stream in FROM",
                {"source": window, "here": "", "behind GROUP BY?": ", window_start, window_end", **final},
                note,
            )
            for kind, lengths, window in _WINDOWS
            for grace, final, note in (
                (", GRACE PERIOD {grace} ", {"FINAL": _FINAL}, ""),
                (", GRACE PERIOD {grace} ", {}, _LATE),
                ("", {}, ""),
            )
        ),
        *(
            Piece(
                f"WITHIN {lengths} {grace}",
                "WITHIN is of ksqlDB: how near rows are is a condition",
                {"here": "", "behind ON": near},
                note,
            )
            for lengths, near in zip(("( {before} , {after} )", "{near.2}"), _NEAR, strict=True)
            for grace, note in (("GRACE PERIOD {grace.2}", _LATE), ("", ""))
        ),
        *(
            Piece(
                f"TABLE ( {kind} ( TABLE {{t.1}} [PARTITION BY {{k}}] , DESCRIPTOR ( {{time}} ) {step} , {{size}} ) )",
                f"{kind} over TABLE and DESCRIPTOR is of Flink",
                {"here": window},
                note,
            )
            for kind, step, window, note in (
                ("CUMULATE", ", {step}", "TUMBLE({t}, {time}, {size})", _CUMULATED),
                ("SESSION", "", "SESSION({t}, {time}, {size})", "sessions are of the other keys of GROUP BY"),
            )
        ),
        *(
            Piece(
                f"{kind} ( {{time}} , INTERVAL {{rest*}} )",
                f"{kind} among the keys is of Flink: windows are of a table in FROM",
                {
                    "source": kind + "({source}, {time}, INTERVAL {rest}){as}",
                    "here": "window_start, window_end",
                    f"{kind}_START()": "window_start",
                    f"{kind}_END()": "window_end",
                },
                when="a key",
            )
            for kind in ("TUMBLE", "HOP", "SESSION")
        ),
        Piece(
            "MATCH_RECOGNIZE ( {by*} ORDER BY {time.1} {rest*} )",
            "patterns of rows, MATCH_RECOGNIZE, are not supported",
            {"from SELECT": "SELECT *, lag({time}) OVER ({by} ORDER BY {time}) AS before FROM {source}"},
            "each row beside the one before it, for conditions around this",
        ),
        Piece(
            "EMIT [PERIODIC {step.1} AND] LAST {size.1} [ON PROCTIME]",
            "EMIT LAST is of Timeplus: where a query begins is a setting",
            {"here": "SETTINGS seek_to = '-{size:duration}'"},
            when="without groups",
        ),
        *(
            Piece(
                f"EMIT {periodic} LAST {{size.1}} [ON PROCTIME]",
                _OF_LAST,
                {
                    "behind SELECT": " window_end,",
                    "source": f"hop({{source}}, {step}, {{size:duration}}){{as}}",
                    **keys,
                },
                f"the last {{size}} at each end of a window, of which there is one every {step}",
            )
            for periodic, step in (("PERIODIC {step.1} AND", "{step:duration}"), ("", "{size:step}"))
            for keys in ({"behind GROUP BY": ", window_end", "here": ""}, {"here": "GROUP BY window_end"})
        ),
        Piece("SHUFFLE BY {keys*}", "SHUFFLE BY says nothing here: keys choose the buckets", {"here": ""}),
    ]
)
