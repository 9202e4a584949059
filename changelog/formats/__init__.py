"""The forms of a record's value; JSON objects are the only one so far. And that of a record without: a heartbeat.

A further form (a Debezium envelope, Avro) is a further pair beside ``json_batch`` and ``json_record``: one that reads a
batch at once or declines, and one that reads a single value and says what is wrong with it.
"""
