"""The functions of Timeplus: ClickHouse's, in snake_case; and those of them that are refused.

A retraction must equal its insertion, and a batch that is run again must give the same output: what changes from one
evaluation to the next is no function here, nor what gives rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from dovetail.sql.functions.arguments import compiled
from dovetail.sql.functions.elsewhere import OF_STREAMS
from dovetail.sql.functions.registry import Refusals, Registry, Table
from dovetail.sql.functions.timeplus import (
    arrays,
    conditions,
    conversions,
    encodings,
    intervals,
    json,
    lambdas,
    mathematics,
    numbers,
    patterns,
    text,
    times,
    tuples,
    urls,
)

GROUPS: Mapping[str, Table] = {
    "numbers": numbers.FUNCTIONS,
    "mathematics": mathematics.FUNCTIONS,
    "conditions": conditions.FUNCTIONS,
    "conversions": conversions.FUNCTIONS,
    "texts": text.FUNCTIONS,
    "patterns": patterns.FUNCTIONS,
    "encodings": encodings.FUNCTIONS,
    "URLs and addresses": urls.FUNCTIONS,
    "JSON": json.FUNCTIONS,
    "times": (*times.FUNCTIONS, *intervals.FUNCTIONS),
    "arrays": (*arrays.FUNCTIONS, *lambdas.FUNCTIONS),
    "tuples and maps": tuples.FUNCTIONS,
}


REFUSED: Refusals = (
    ("""now now64 now_in_block today yesterday current_timestamp current_date localtimestamp proctime utc_timestamp
        get_current_timestamp uptime""",
     "has no fixed value in a streaming query",
     "in WHERE, compare a column with the time: at > now() - 1h; else use _tp_time"),
    ("""rand rand32 rand64 rand_canonical rand_constant rand_uniform rand_normal rand_exponential rand_bernoulli random
        random_string random_fixed_string random_printable_ascii random_string_utf8 uuid generate_uuid generate_uuidv4
        generate_uuid_v4 generate_uuidv7 generate_uuid_v7 gen_random_uuid generate_ulid generate_snowflake_id
        array_shuffle array_random_sample fuzz_bits""",
     "is random, so a retraction could not equal its insertion", "compute it in the producer"),
    ("array_join unnest explode replicate",
     "gives several rows for one", "write it in FROM: FROM s ARRAY JOIN array AS element"),
    ("""neighbor running_difference running_difference_starting_with_first_value running_accumulate row_number_in_block
        row_number_in_all_blocks block_number block_size""",
     "depends on the rows that come in the same batch", "use a window, or an ASOF join"),
    ("version host_name hostname current_user current_database timezone server_timezone server_uuid tcp_port",
     "depends on the server that computes it", "write the value itself"),
    ("tumble hop session cumulate tumble_start tumble_end hop_start hop_end session_start session_end",
     "makes windows of rows in FROM", "FROM tumble(s, at, 1m) GROUP BY window_start, .."),
    ("""city_hash64 sip_hash64 sip_hash128 sip_hash64_keyed xx_hash32 xx_hash64 xxh3 farm_hash64 farm_fingerprint64
        metro_hash64 murmurhash2_32 murmurhash2_64 murmurhash3_32 murmurhash3_64 murmurhash3_128 murmur_hash3_32
        murmur_hash3_64 java_hash hive_hash int_hash32 int_hash64 wy_hash64 crc32 crc32ieee crc64 weak_hash32""",
     "cannot be computed here as ClickHouse does, to the last bit",
     "use md5, half_md5, sha1 or sha256, whose values are the same everywhere"),
)  # fmt: skip


@cache
def functions() -> Registry:
    """All of them; made once."""
    registry = Registry("Timeplus", compiled, OF_STREAMS)
    for group, table in GROUPS.items():
        registry.add(group, table)
    registry.refuse(REFUSED)
    return registry
