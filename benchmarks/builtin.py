"""The contender: Spark's own stream-stream inner join of the same two topics, JSON in and JSON out.

    python -m benchmarks.builtin BROKERS CHECKPOINT BATCH equal|range

equal   orders and parcels, by their key
range   bids and asks, by their key, 10 s apart at most; the watermark is 20 s behind

Prints one line of JSON: seconds from the start of the first batch to the end of the last.
"""

from __future__ import annotations

import json
import sys
import time

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from dovetail.runtime.settings import read_settings
from dovetail.services.jars import jar_paths
from dovetail.spark_jobs.runner.spark_session import start_session
from dovetail.spark_jobs.runner.warm_up import warm_up

SCHEMAS = {
    "orders": "k long, name string, price double, ts long",
    "parcels": "k long, name string, qty double, ts long",
    "bids": "k long, name string, price double",
    "asks": "k long, name string, qty double",
}


def equal(session: SparkSession, brokers: str, batch: int) -> DataFrame:
    left, right = (stream(session, brokers, topic, batch // 2) for topic in ("orders", "parcels"))
    return left.join(right, left.k == right.k).select(
        left.k, left.name, left.price, right.qty, left.ts.alias("lts"), right.ts.alias("rts")
    )


def near(session: SparkSession, brokers: str, batch: int) -> DataFrame:
    left, right = (
        stream(session, brokers, topic, batch // 2).withWatermark("timestamp", "20 seconds")
        for topic in ("bids", "asks")
    )
    apart = f.expr("INTERVAL 10 SECONDS")
    in_range = left.timestamp.between(right.timestamp - apart, right.timestamp + apart)
    return left.join(right, (left.k == right.k) & in_range).select(left.k, left.name, left.price, right.qty)


JOINS = {"equal": equal, "range": near}


def stream(session: SparkSession, brokers: str, topic: str, batch: int) -> DataFrame:
    reader = session.readStream.format("kafka").option("kafka.bootstrap.servers", brokers).option("subscribe", topic)
    reader = reader.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", str(batch))
    records = reader.option("kafka.fetch.max.wait.ms", "10").load()
    parsed = records.select("timestamp", f.from_json(records.value.cast("string"), SCHEMAS[topic]).alias("row"))
    return parsed.select("timestamp", "row.*")


def main(brokers: str, checkpoint: str, batch: int, kind: str) -> None:
    session = start_session("builtin", jar_paths(read_settings(), "spark"), java_options="")
    warm_up(session)
    # Its best settings, not ours: code generation pays for a join that runs row by row in the JVM.
    session.conf.set("spark.sql.codegen.wholeStage", "true")
    session.conf.set("spark.sql.codegen.factoryMode", "FALLBACK")
    session.conf.set("spark.sql.shuffle.partitions", "2")
    output = JOINS[kind](session, brokers, batch).select(f.to_json(f.struct("*")).alias("value"))
    started = time.monotonic()
    query = (
        output.writeStream.format("kafka")
        .option("kafka.bootstrap.servers", brokers)
        .option("topic", "builtin")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    print(json.dumps({"seconds": time.monotonic() - started}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
