"""Functions of other systems, and what is written in their place: for a name that is unknown, before the nearest one.

Of each an example, over a number n, a text s, times t and u, an array tags and a text doc with JSON in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Table = Sequence[tuple[str, str]]
"""Names, parted by blanks; what is written here."""

_IF = "CASE WHEN n > 1 THEN 'a' ELSE 'b' END"
_BOTH: Table = (
    ("iff switch", _IF),
    ("datalength", "length(s)"),
    ("datetrunc timestamp_trunc datetime_trunc time_bucket time_slice", "date_trunc('hour', t)"),
    ("getdate sysdate sysdatetime current_datetime", "now()"),
    ("element_at nth", "tags[1]"),
)
_STREAMS: Table = (
    ("isnull nvl zeroifnull", "if_null(n, 0)"),
    ("decode", _IF),
    ("nvl2", "if(n IS NULL, 0, 1)"),
    ("charindex strpos", "position(s, 'a')"),
    ("split string_split string_to_array", "split_by_string(',', s)"),
    ("regexp_substr regexp_match substring_regex", "regexp_extract(s, 'a+')"),
    ("regexp_like rlike regexp_contains regexp_matches", "match(s, 'a+')"),
    ("date_bin", "date_trunc('hour', t)"),
    ("str_to_date strptime parse_timestamp to_timestamp", "parse_datetime(s, '%Y-%m-%d')"),
    ("to_char strftime format_timestamp", "format_datetime(t, '%Y-%m-%d')"),
    ("from_unixtime", "from_unix_timestamp(n)"),
    ("unix_timestamp", "to_unix_timestamp(t)"),
    ("timestamp_millis epoch_ms", "from_unix_timestamp64_milli(n)"),
    ("dateadd timestampadd", "date_add('day', 1, t)"),
    ("datediff timestampdiff", "date_diff('day', t, u)"),
    ("dayofweek weekday dow", "to_day_of_week(t)"),
    ("dayofyear", "to_day_of_year(t)"),
    ("dayofmonth", "to_day_of_month(t)"),
    ("curdate", "today()"),
    ("sha2", "sha256(s)"),
    ("json_extract_scalar get_json_object", "json_value(doc, '$.a')"),
    ("array_contains list_contains contains", "has(tags, 'a')"),
    ("to_number tonumber", "CAST(s AS float64)"),
    ("chr", "char(65)"),
    ("base64", "base64_encode(s)"),
    ("unbase64", "base64_decode(s)"),
    ("array_length cardinality array_size", "length(tags)"),
    ("struct named_struct row", "(n, s)"),
    ("url_decode", "decode_url_component(s)"),
    ("div", "int_div(n, 2)"),
)
_TABLES: Table = (
    ("isnull nvl if_null zeroifnull", "coalesce(n, 0)"),
    ("nvl2 if multi_if", _IF),
    ("charindex locate", "strpos(s, 'a')"),
    ("replicate", "repeat(s, 2)"),
    ("space", "repeat(' ', 3)"),
    ("ucase", "upper(s)"),
    ("lcase", "lower(s)"),
    ("mid", "substring(s, 1, 2)"),
    ("split string_split split_by_string", "string_to_array(s, ',')"),
    ("regexp_extract regexp_substr", "regexp_match(s, 'a+')"),
    ("regexp_like rlike regexp_contains match", "s ~ 'a+'"),
    ("str_to_date strptime parse_timestamp parse_datetime", "to_timestamp(s, 'YYYY-MM-DD')"),
    ("date_format strftime format_timestamp format_datetime", "to_char(t, 'YYYY-MM-DD')"),
    ("from_unixtime timestamp_seconds", "to_timestamp(n)"),
    ("timestamp_millis epoch_ms", "to_timestamp(n / 1000.0)"),
    ("unix_timestamp to_unix_timestamp", "extract(epoch FROM t)"),
    ("dateadd date_add timestampadd", "t + INTERVAL '1 day'"),
    ("date_sub", "t - INTERVAL '1 day'"),
    ("datediff date_diff timestampdiff", "extract(epoch FROM u - t) / 86400"),
    ("dayofweek weekday dow to_day_of_week", "extract(dow FROM t)"),
    ("dayofyear", "extract(doy FROM t)"),
    ("year to_year", "extract(year FROM t)"),
    ("month to_month", "extract(month FROM t)"),
    ("day dayofmonth", "extract(day FROM t)"),
    ("hour to_hour", "extract(hour FROM t)"),
    ("curdate today", "current_date"),
    ("json_extract_scalar get_json_object json_value json_extract_string", "doc::jsonb ->> 'a'"),
    ("list_contains contains has", "'a' = ANY(tags)"),
    ("size array_size", "cardinality(tags)"),
    ("to_number tonumber", "s::numeric"),
    ("to_string tostring", "n::varchar"),
    ("to_int to_int32 toint32 to_int64", "s::int"),
    ("to_float to_float64 tofloat64", "s::double precision"),
    ("struct named_struct tuple", "ROW(n, s)"),
    ("int_div", "n / 2"),
)


def _by_name(tables: Sequence[Table]) -> Mapping[str, str]:
    return {name: here for table in tables for names, here in table for name in names.split()}


OF_STREAMS = _by_name((_BOTH, _STREAMS))
OF_TABLES = _by_name((_BOTH, _TABLES))
