# ruff: noqa: E501 - lists of expressions
"""What expressions of RisingWave are made of: for every type its leaves, and forms over parts of other types.

``{int}`` in a form is a part of that type. The small types (``{few}``, ``{pos}``, ``{pattern}``, ``{zone}``) have only
leaves: their values fit where others would fail on most rows.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping

from tests.oracles.fuzz import Sample

LEAVES: Mapping[str, str] = {
    "smallint": "i2",
    "int": "i4 | k4 | 7 | -3 | 0",
    "bigint": "i8 | i4::bigint | 5000000000",
    "real": "r | 2.5::real",
    "double": "d | e | 0.5::float8 | 2.5::float8 | '-0.0'::float8",
    "numeric": "n | m | 2.5 | -0.05 | 10.25::numeric(10,3)",
    "text": "s | t | s | 'abc' | '' | E'tab\\there' | 'Ünï'",
    "word": "w",
    "bool": "b | c | true | false",
    "date": "dt | date '2024-02-29' | '2021-01-03'::date",
    "timestamp": "ts | timestamp '2024-02-29 23:59:59.5' | '2020-12-31 10:00:00'::timestamp",
    "instant": "tz | timestamptz '2024-03-31 01:30:00+00'",
    "time": "tm | time '12:34:56.789'",
    "interval": "iv | iv | interval '1 day 02:30:00' | '3 hours'::interval | interval '2' month | interval '-1 year 3 days' | interval '1.5 days' | INTERVAL '1 week'",
    "bytes": "by | '\\x0102ff'::bytea",
    "ints": "ai | ARRAY[1, 2, 3] | '{4,NULL,5}'::int[] | ARRAY[]::int[]",
    "doubles": "ad | ARRAY[1.5, 2.5]::float8[]",
    "texts": "at | ARRAY['a', 'b'] | '{\"x y\",z}'::text[]",
    "json": "j::jsonb | '{\"a\": [1, {\"b\": null}]}'::jsonb",
    "few": "0 | 1 | 2 | 3 | -1 | -2 | k4",
    "pos": "1 | 2 | 3 | 12",
    "small_text": "'a' | t | ',' | 'o' | ''",
    "key": "'a' | 'b' | 'a/b' | t",
    "path": "'{a}' | '{b,c,0}' | '{0}' | '{a,1}' | ARRAY['b','c']",
    "pattern": "'[a-z]+' | 'o' | '^.' | '\\d' | '(b)(a)' | '\\s' | 'l{2}' | '\\mf\\w*' | 'X.X'",
    "like": "'%o%' | '_b%' | 'a' | '%\\%%' | '' | t",
    "zone": "'UTC' | 'America/New_York' | 'Asia/Kolkata'",
    "angle": "e | 0.5::float8 | -2.5::float8",
}  # fmt: skip

FORMS: Mapping[str, str] = {
    "smallint": """
        {smallint} + {smallint} | {smallint} * 2::smallint | {int}::smallint | coalesce({smallint}, 3::smallint) | -{smallint}
        abs({smallint}) | {smallint} / {smallint} | {smallint} % {smallint} | {numeric}::int2 | {double}::int2 | {smallint} & {smallint}
    """,
    "int": """
        {int} + {int} | {int} - {int} | {int} * {int} | {int} / {int} | {int} % {int} | -{int} | {smallint} + {int} | ({int} + {int}) * {smallint}
        {bigint}::int | {numeric}::int | {double}::int | {bool}::int | {word}::int | ({text} || '')::int | {real}::int4
        abs({int}) | mod({int}, {int}) | gcd({int}, {int}) | lcm({few}, {few}) | {int} & {int} | {int} | {int} | {int} # {int} | ~{int} | {few} << {pos} | {int} >> {pos}
        coalesce({int}, {int}) | nullif({int}, {int}) | greatest({int}, {int}, {smallint}) | least({int}, {int})
        CASE WHEN {bool} THEN {int} ELSE {int} END | CASE {few} WHEN 1 THEN {int} WHEN 2 THEN {smallint} END
        length({text}) | char_length({text}) | character_length({text}) | octet_length({text}) | bit_length({text}) | octet_length({bytes}) | length({bytes}) | bit_length({bytes})
        strpos({text}, {small_text}) | position({small_text} in {text}) | ascii({text}) | regexp_count({text}, {pattern}) | regexp_count({text}, '[a-z]+', {pos}) | regexp_count({text}, 'L', 1, 'i')
        {date} - {date} | num_nulls({int}, {text}, {bool}) | num_nonnulls({double}, {date}) | width_bucket({double}, 0, 10, 5) | width_bucket({numeric}, 10, 0, {pos})
        jsonb_array_length({json}) | json_array_length({json}::json) | array_length({ints}, 1) | array_length({texts}, 1) | cardinality({ints}) | cardinality({doubles}) | array_position({ints}, {few}) | array_position({texts}, 'a', {pos})
        array_upper({ints}, 1) | scale(10.250::numeric(10,3)) | scale({int}) | scale(1.50) | min_scale({numeric}) | min_scale({int}) | min_scale(-10.2500) | array_lower({texts}, 1) | array_ndims({ints}) | array_ndims(ARRAY[ARRAY[1, {few}], ARRAY[3, 4]]) | {ints}[{few}] | ({json} ->> {key})::int | get_byte({bytes}, {few}) | array_min({ints}) | array_max({ints})
        scale_free | ({json} -> {key})::int
    """.replace("scale_free | ", ""),
    "bigint": """
        {bigint} + {int} | {bigint} - {bigint} | {bigint} * {smallint} | {bigint} / {int} | {bigint} % {int} | {int}::bigint | {numeric}::bigint | {double}::int8
        abs({bigint}) | greatest({bigint}, {int}) | coalesce({bigint}, {int}) | CASE WHEN {bool} THEN {bigint} ELSE {int} END | {word}::bigint | array_sum({ints}) | gcd({bigint}, {int})
    """,
    "real": """
        {real} + {real} | {real} * {real} | {int}::real | {double}::float4 | {numeric}::real | -{real} | abs({real}) | coalesce({real}, 0::real)
    """,
    "double": """
        {double} + {double} | {double} - {double} | {double} * {double} | {double} / {double} | {double} + {int} | {real} + {double} | {numeric} * {double} | {real} + {int} | -{double}
        {int}::float8 | {numeric}::double precision | {real}::float8 | {word}::float8 | CASE WHEN {bool} THEN {double} ELSE {int} END | coalesce({double}, {int}) | greatest({double}, {double})
        abs({double}) | ceil({double}) | ceiling({int}) | floor({double}) | round({double}) | round({int}) | trunc({double}) | sign({double}) | sqrt({double}) | cbrt({double}) | exp({angle}) | ln({double}) | log({double})
        log10({double}) | power({double}, {few}) | pow({angle}, {few}) | {double} ^ {few} | |/ {double} | ||/ {double} | sin({angle}) | cos({angle}) | tan({angle}) | cot({angle}) | asin({angle}) | acos({angle}) | atan({double})
        atan2({double}, {double}) | sinh({angle}) | cosh({angle}) | tanh({double}) | asinh({angle}) | acosh({double}) | atanh({angle}) | degrees({double}) | radians({double}) | pi() | dsqrt({double})
        exp({few})
        date_part('hour', {timestamp}) | date_part('epoch', {instant}) | date_part('second', {timestamp}) | date_part('dow', {date}) | date_part('year', {interval}) | array_max({doubles}) | {doubles}[{pos}] | array_sum({doubles}) | array_min({doubles})
    """,
    # The last digits differ, or PostgreSQL has a numeric: their texts do too, so they are no part of anything.
    "inexact": "sqrt({numeric}) | ln({numeric}) | log(2, {numeric}) | power({numeric}, 2) | exp(0.5) | log10({numeric}) | {numeric} ^ 2 | asind({angle}) | acosd({angle}) | atand({double}) | atan2d({double}, {angle}) | sind({angle}) | cosd({angle}) | tand({angle}) | cotd({angle})",
    "numeric": """
        {numeric} + {numeric} | {numeric} - {int} | {numeric} * {numeric} | {numeric} % {numeric} | -{numeric} | {int} + {numeric} | {int}::numeric(12,2) | {numeric}::numeric(10,1) | {word}::numeric(10,2) | {bigint} * {numeric} | {double}::numeric(14,4)
        abs({numeric}) | ceil({numeric}) | floor({numeric}) | round({numeric}) | round({numeric}, 1) | round({numeric}, -1) | trunc({numeric}) | trunc({numeric}, 1) | sign({numeric}) | mod({numeric}, {numeric}) | div({numeric}, {numeric}) | round({int}, -1) | round({int}, 2)
        coalesce({numeric}, {int}) | greatest({numeric}, {numeric}) | CASE WHEN {bool} THEN {numeric} ELSE {int} END | nullif({numeric}, {numeric}) | factorial({pos}) | factorial({few}) | '1.50'::numeric | least({numeric}, {int}) | trim_scale(8.4100) | trim_scale({int}) | trim_scale(10.250::numeric(10,3))
        extract(epoch from {timestamp}) | extract(epoch from {date}) | extract(epoch from {interval}) | extract(second from {timestamp}) | extract(milliseconds from {timestamp}) | extract(microseconds from {instant}) | extract(year from {date})
        extract(month from {timestamp}) | extract(day from {date}) | extract(hour from {instant}) | extract(minute from {timestamp}) | extract(dow from {date}) | extract(isodow from {date}) | extract(doy from {date}) | extract(week from {date}) | extract(quarter from {date})
        extract(isoyear from {date}) | extract(century from {date}) | extract(decade from {date}) | extract(millennium from {timestamp}) | extract(day from {interval}) | extract(hour from {time}) | extract(month from {interval}) | extract(second from {interval}) | ({json} ->> 'a')::numeric(10,2)
    """,
    "text": """
        {text} || {text} | {text} || {int} | {numeric} || {text} | {bool} || {text} | {int}::text | {bigint}::varchar | n::text | m::text | {bool}::text | {date}::text | {timestamp}::text | {instant}::text | {time}::text | {real}::text | {double}::text | {interval}::text
        ({ints})::text | ({texts})::text | ({doubles})::text | {bytes}::text | {text}::varchar(3) | ({timestamp} || {text}) | concat({text}, {int}, {bool}, {double}) | concat({text}) | concat_ws({small_text}, {text}, {int}, {text}) | concat_ws('-', {date}, {bool})
        format('%s and %s', {text}, {int}) | format('%I=%L%%', 'a b', {text}) | format('%2$s-%1$s', {text}, {bool}) | format('[%5s|%-5s]', {text}, 'x') | lower({text}) | upper({text}) | initcap({text}) | substring({text}, {few}) | substring({text}, {few}, {pos}) | substr({text}, {pos}, {few})
        substring({text} from {few} for {pos}) | substring({text} from {pattern}) | left({text}, {few}) | right({text}, {few}) | lpad({text}, {pos}) | lpad({text}, {few}, {small_text}) | rpad({text}, {pos}, {small_text}) | rpad({text}, 7) | btrim({text}) | btrim({text}, {small_text}) | ltrim({text}) | ltrim({text}, 'aH') | rtrim({text}, 'dc ') | ({text} COLLATE "C") < {text}
        rtrim({text}) | trim({text}) | trim(both 'a' from {text}) | trim(leading from {text}) | trim(trailing 'c' from {text}) | replace({text}, {small_text}, {small_text}) | translate({text}, 'abc', 'xy') | translate({text}, {small_text}, 'z') | overlay({text} placing 'XY' from {pos}) | overlay({text} placing {small_text} from {pos} for {pos})
        repeat({text}, {few}) | reverse({text}) | split_part({text}, {small_text}, {pos}) | split_part({text}, ',', {few}) | chr({pos}) | chr(233) | quote_literal({text}) | quote_nullable({text}) | quote_literal({int}) | regexp_replace({text}, {pattern}, 'Z') | regexp_replace({text}, {pattern}, '<\\&>', 'g') | regexp_replace({text}, '(b)(.)', '\\2\\1', 'gi') | regexp_replace({text}, '[a-z]', 'Z', {pos}) | regexp_replace({text}, 'l|o', '<\\&>', {pos}, 0) | regexp_replace({text}, '(l|o)([a-z]*)', '<\\2\\&\\1>', 1, 2, 'i') | regexp_replace({text}, '[A-Z]+', '', 1, 0, 'i') | regexp_replace({text}, '(x?)[elo]+', '[\\1]', 2, 3) | regexp_replace({text}, NULL, 'a') | regexp_replace({text}, 'a', 'b', NULL)
        md5({text}) | md5({bytes}) | encode({bytes}, 'hex') | encode({bytes}, 'base64') | encode({bytes}, 'escape') | encode('\\x005cff41'::bytea, 'escape') | to_hex({int}) | to_hex({bigint}) | coalesce({text}, {text}) | nullif({text}, {small_text}) | greatest({text}, {text}) | CASE WHEN {bool} THEN {text} ELSE {text} END | CASE {text} WHEN 'a' THEN 'x' ELSE {text} END
        to_char({timestamp}, 'YYYY-MM-DD HH24:MI:SS.US') | to_char({interval}, 'YYYY YY MM DD HH24:MI:SS.US AM') | to_char({interval}, 'FMHH24 FMMI FMMM MS HH12 pm "x"') | to_char({timestamp}, 'Dy, DD Mon YY HH12:MI AM') | to_char({date}, 'FMDay Month FMDD "of" Q IYYY-IW-ID DDD') | to_char({instant}, 'HH24:MI:SS.MS TZ D W WW') | to_char({instant}, 'TZH:TZM') | to_char({timestamp}, 'yyyymmdd hh24miss') | to_char({date}, 'FMMonth FMMM FMDDD')
        {json} ->> {key} | '[1, "b", {{"c": null}}, 2.5]'::jsonb ->> {few} | to_jsonb({texts}) ->> {few} | {json} #>> {path} | jsonb_extract_path_text({json}, 'a', '1') | jsonb_typeof({json}) | json_typeof({json}::json) | json_extract_path_text({json}::json, 'a') | quote_ident({small_text}) | quote_ident('Ab c') | {texts}[{pos}] | array_to_string({ints}, ',') | array_to_string({texts}, {small_text}, '*') | array_to_string({doubles}, ' ') | convert_from({bytes}, 'UTF8') | jsonb_extract_path_text({json}, 'b', 'c', '0') | array_max({texts})
    """,
    "bool": """
        {int} = {int} | {int} < {bigint} | {double} >= {int} | {numeric} <> {double} | {numeric} = {int} | {text} < {text} | {text} = 'a' | {date} <= {timestamp} | {timestamp} > {timestamp} | {date} > '2000-01-01' | {instant} < {timestamp} | {interval} > {interval} | {real} = {double} | {real} < {numeric} | {interval} = {interval} | {interval} in (iv, {interval}) | {interval} between {interval} and {interval} | {interval} is distinct from iv | {bool} = {bool} | {ints} = {ints} | {texts} < {texts} | {time} < {time} | {time} < {interval} | {interval} = {time} | {bytes} = {bytes}
        {bool} AND {bool} | {bool} OR {bool} | NOT {bool} | {int} IS NULL | {text} IS NOT NULL | {bool} IS TRUE | {bool} IS NOT FALSE | {int} IS DISTINCT FROM {int} | {text} IS NOT DISTINCT FROM {text} | {double} IS DISTINCT FROM {double} | {int} BETWEEN {int} AND {int} | {date} BETWEEN {date} AND '2024-12-31' | {int} IN (1, 2, {int}) | {text} NOT IN ('a', {text}) | {int} NOT BETWEEN 0 AND {int} | {numeric} IN (1.5, 2)
        {text} LIKE {like} | {text} NOT LIKE ANY({texts}) | {text} LIKE ALL({texts}) | {text} ILIKE SOME(ARRAY['%o%', NULL]) | {text} NOT LIKE {like} | {text} ILIKE '%H%' | {text} LIKE 'a!%' ESCAPE '!' | {text} ~ {pattern} | {text} !~ {pattern} | {text} ~* 'HELLO' | {text} !~* 'x' | {text} SIMILAR TO '%(a|o)%' | {text} SIMILAR TO '[a-c]_*' | {text} NOT SIMILAR TO 'a.c' | starts_with({text}, {small_text}) | {text} ^@ 'a'
        {int} = ANY({ints}) | {int} <> ALL({ints}) | {text} = ANY(ARRAY['a', {text}]) | {int} < ANY({ints}) | {double} > ALL({doubles}) | {ints} @> ARRAY[1, {few}] | {ints} <@ {ints} | {ints} && ARRAY[3, {int}] | {texts} @> {texts} | {json} @> '{{"a": 1}}' | {json} @> '[1]'::jsonb | '{{"a": 1}}'::jsonb <@ {json} | {json} ? {key} | {json} @> '[[1]]' | {json} @> '{{"c": [1]}}' | '[[1, 2], {{"a": {{"b": 2.0}}}}]'::jsonb @> '[[2], {{"a": {{"b": 2}}}}]' | {json} @> '1'
        {int}::bool | {word}::bool | coalesce({bool}, {bool}) | CASE WHEN {bool} THEN {bool} END | isfinite({timestamp}) | isfinite({date}) | array_contains({ints}, {ints}) | array_contained({ints}, ARRAY[1, 2, 3]) | jsonb_contains({json}, '{{"b": {{"c": [1]}}}}') | jsonb_exists({json}, {key}) | ({int}, {text}) = ({int}, 'a') | {int} = {int} AND NOT {bool} OR {bool} | jsonb_contained('{{}}', {json})
    """,
    "date": """
        {date} + {few} | {date} - {int} | {timestamp}::date | {instant}::date | make_date(2024, {pos}, {pos}) | make_date(k4, 2, 29) | to_date('2024-03-' || {pos}, 'YYYY-MM-DD') | to_date('05 Mar 2021', 'DD Mon YYYY') | coalesce({date}, {date}) | greatest({date}, {date}) | CASE WHEN {bool} THEN {date} ELSE {date} END | {few} + {date} | nullif({date}, {date}) | '2024-05-06 10:00:00'::date | date({timestamp})
    """,
    "timestamp": """
        {timestamp} + {interval} | {timestamp} - {interval} | {date} + {interval} | {date} - {interval} | {interval} + {timestamp} | {date}::timestamp | {instant}::timestamp | date_trunc('day', {timestamp}) | date_trunc('week', {timestamp}) | date_trunc('quarter', {timestamp}) | date_trunc('century', {timestamp}) | date_trunc('milliseconds', {timestamp})
        date_trunc('month', {timestamp}) | date_trunc('hour', {timestamp}) | date_trunc('decade', {timestamp}) | {instant} AT TIME ZONE {zone} | timezone({zone}, {instant}) | make_timestamp(2024, {pos}, {pos}, {few}, 30, 1.5) | {date} + {time} | {time} + {date} | date_bin('15 minutes', {timestamp}, timestamp '2001-01-01') | coalesce({timestamp}, {date}) | {timestamp} + '1 day' | date_trunc('millennium', {timestamp}) | date_trunc('year', {timestamp})
    """,
    "instant": """
        {instant} + {interval} | {instant} - {interval} | make_timestamptz(2024, {pos}, {pos}, {few}, 30, 1.5) | make_timestamptz(2024, {pos}, {pos}, {few}, 30, 1.5, {zone}) | {timestamp}::timestamptz | {timestamp} AT TIME ZONE {zone} | date_trunc('day', {instant}) | date_trunc('day', {instant}, {zone}) | date_trunc('hour', {instant}, {zone}) | date_trunc('hour', timestamptz '2023-11-05 08:40:00+00', 'US/Pacific') | date_trunc('minute', {instant}, {zone}) | '2020-01-02 12:34:56 -11:00'::timestamptz | ('2020-01-02 12:34:56.5 ' || '+05')::timestamptz | date_trunc('month', {date}) | to_timestamp({angle}) | to_timestamp(i8 / 100000000) | to_timestamp('2024-02-29 10:11:12', 'YYYY-MM-DD HH24:MI:SS') | to_timestamp('2024-02-29 10:11:12 +03:30', 'YYYY-MM-DD HH24:MI:SS TZH:TZM') | to_timestamp('2024-02-29 10:11:12 -05', 'YYYY-MM-DD HH24:MI:SS TZH') | coalesce({instant}, {timestamp}) | greatest({instant}, {instant}) | timezone({zone}, {timestamp}) | date_bin('1 hour', {instant}, timestamptz '2020-01-01') | '2024-01-01 10:00:00+02'::timestamptz
    """,
    "time": """
        {timestamp}::time | {time} + interval '3 hours' | {time} - interval '90 minutes' | make_time({pos}, 30, 1.25) | coalesce({time}, {time}) | '10:20:30'::time
    """,
    "interval": """
        {interval} + {interval} | {interval} - {interval} | {interval} * {few} | {interval} * 1.5 | -{interval} | {timestamp} - {timestamp} | {instant} - {instant} | {timestamp} - {date} | {interval} / 2 | {time} - {time} | {time}::interval
        make_interval({few}, 1, 0, {pos}) | make_interval(0, 0, 0, 0, {pos}, 2, 1.5) | justify_hours({interval}) | justify_days({interval}) | age({timestamp}, {timestamp}) | date_trunc('hour', {interval}) | date_trunc('minute', {time}) | {time} * 2 | 1.5 * {time} | {time} / 4 | coalesce({interval}, {interval}) | {few} * {interval}
    """,
    "bytes": """
        btrim({bytes}, '\\x00ff'::bytea) | ltrim({bytes}, {bytes}) | rtrim({bytes}, ''::bytea) | trim('\\x01ff'::bytea from {bytes}) | substr({bytes}, {few}) | substr({bytes}, {few}, {pos}) | substring({bytes} from {few} for {pos}) | {bytes} || {bytes} | sha256({bytes}) | decode('0aff', 'hex') | decode('aGk=', 'base64') | decode('a\\134\\\\b\\303\\261', 'escape') | 'De\\123\\\\x'::bytea | '\\x De Ad'::bytea | '\\303\\261'::bytea | {small_text}::bytea | coalesce({bytes}, {bytes}) | sha1({bytes}) | convert_to({text}, 'UTF8') | int8send({bigint}) | int8send({int}) | int4send({int})
    """,
    "ints": """
        ARRAY[{int}, {int}] | array_append({ints}, {int}) | array_prepend({int}, {ints}) | array_cat({ints}, {ints}) | {ints} || {ints} | {ints} || {int} | {int} || {ints} | array_remove({ints}, {few}) | array_replace({ints}, 1, {few}) | array_positions({ints}, {few}) | array_distinct({ints}) | array_sort({ints}) | array_reverse({ints})
        {ints}[1:2] | {ints}[{few}:{pos}] | {ints}[2:] | {ints}[:{few}] | trim_array({ints}, {few}) | coalesce({ints}, {ints}) | string_to_array('1,2', ',')::int[] | ARRAY[{few}::float8, 2.5]::int[] | CASE WHEN {bool} THEN {ints} END
    """,
    "doubles": "{ints}::float8[] | array_append({doubles}, {double}) | ARRAY[{double}, {int}] | array_sort({doubles})",
    "texts": """
        ARRAY[{text}, 'x'] | string_to_array({text}, {small_text}) | string_to_array({text}, ',', '') | string_to_array({text}, NULL) | regexp_match({text}, {pattern}) | regexp_match({text}, 'H(E)', 'i') | regexp_match({text}, '(x)?(l)+') | regexp_match({text}, NULL) | regexp_match({text}, 'a', NULL) | regexp_match({text}, 'H(E)', 'ic') | regexp_match({text}, 'H(E)', 'ci') | regexp_split_to_array({text}, '[ ,]') | array_append({texts}, {text}) | array_remove({texts}, 'a') | {texts} || {text}::text | {ints}::text[] | array_cat({texts}, {texts}) | array_prepend({text}, {texts}) | array_distinct({texts})
    """,
    "json": """
        {json} -> {key} | '[1, "b", {{"c": [null, 1]}}]'::jsonb -> {few} | {json} #> {path} | jsonb_extract_path({json}, 'a') | json_extract_path({json}::json, 'b', 'c') | jsonb_build_object('k', {int}, 'a', {text}) | jsonb_build_array({int}, {text}, {bool}, {double}) | to_jsonb({int}) | to_jsonb({text}::text) | to_jsonb({ints}) | to_jsonb({timestamp}) | to_jsonb({bool}) | to_jsonb({numeric}) | jsonb_build_object('n', {numeric}, 'j', {json}) | to_jsonb({instant}) | to_jsonb({texts}) | jsonb_pretty({json})::jsonb
    """,
}  # fmt: skip

_PART = re.compile(r"(?<!\{)\{([a-z_]+)\}(?!\})")


def _listed(lines: str) -> list[str]:
    """Cut at `` | `` and line ends; ``||`` and ``|/`` are operators."""
    return [form.strip() for line in lines.strip().splitlines() for form in re.split(r" \| ", line) if form.strip()]


def leaves(kind: str) -> list[str]:
    return _listed(LEAVES[kind])


def forms(kind: str) -> list[str]:
    return _listed(FORMS.get(kind, ""))


ALL_FORMS: tuple[tuple[str, str], ...] = tuple((kind, form) for kind in FORMS for form in forms(kind))


def leaf(kind: str, rng: random.Random) -> Sample:
    return Sample(rng.choice(leaves(kind)), kind=kind)


def sample(kind: str, depth: int, rng: random.Random) -> Sample:
    """A random expression of a type; at most ``depth`` forms stand in one another."""
    if depth == 0 or kind not in FORMS or rng.random() < 0.15:
        return leaf(kind, rng)
    return made(kind, rng.choice(forms(kind)), depth - 1, rng)


def made(kind: str, form: str, depth: int, rng: random.Random) -> Sample:
    """One form, its parts random: each in brackets where it is a form itself."""
    kinds = _PART.findall(form)
    numbers = iter(range(len(kinds)))
    template = _PART.sub(lambda _: f"{{{next(numbers)}}}", form)
    parts = tuple(_bracketed(sample(part, depth, rng)) for part in kinds)
    return Sample(template if parts else template.replace("{{", "{").replace("}}", "}"), parts, kind)


def _bracketed(part: Sample) -> Sample:
    plain = not part.parts and re.fullmatch(r"[a-z0-9_]+|'[^']*'", part.template)
    return part if plain else Sample("({0})", (part,), part.kind)


def samples(rng: random.Random, depth: int = 3) -> Iterator[Sample]:
    """Without end."""
    kinds = list(FORMS)
    while True:
        kind = rng.choice(kinds)
        yield made(kind, rng.choice(forms(kind)), rng.randrange(depth), rng)
