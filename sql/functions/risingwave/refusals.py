"""Functions that are known and refused: what changes from one evaluation to the next, and what gives several rows."""

from __future__ import annotations

from dovetail.sql.functions.registry import Refusals

REFUSED: Refusals = (
    ("tumble hop session cumulate tumble_start tumble_end hop_start hop_end session_start session_end",
     "makes windows of rows in FROM", "FROM TUMBLE(t, at, INTERVAL '1 minute') GROUP BY window_start, .."),
    ("gap_fill locf interpolate keepnull", "fills the gaps between rows in FROM",
     "FROM GAP_FILL(t, at, INTERVAL '1 minute', LOCF(v), PARTITION_BY(k))"),
    ("""now proctime clock_timestamp statement_timestamp transaction_timestamp timeofday current_timestamp current_date
        current_time localtimestamp localtime pg_sleep""",
     "has no fixed value in a streaming query",
     "in WHERE, compare a column with the time: at > now() - INTERVAL '1 hour'; else use an event time column"),
    ("random gen_random_uuid uuid_generate_v4 setseed",
     "is random, so a retraction could not equal its insertion", "compute it in the producer"),
    ("unnest", "gives several rows for one",
     "FROM t CROSS JOIN UNNEST(t.tags) AS u(tag), whose elements can be compared, grouped and ordered"),
    ("""generate_series range regexp_matches regexp_split_to_table string_to_table jsonb_array_elements
        jsonb_array_elements_text jsonb_each jsonb_each_text jsonb_object_keys json_object_keys json_array_elements
        generate_subscripts""",
     "gives several rows for one",
     "call it in FROM, FROM f(..) AS r(a), whose rows can be filtered, grouped and joined"),
    ("""current_user session_user current_database current_schema version pg_typeof current_setting nextval lastval
        currval txid_current pg_backend_pid inet_client_addr""",
     "depends on the session", "write the value itself"),
)  # fmt: skip
