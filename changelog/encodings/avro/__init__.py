"""Avro, a batch at once: the records of one schema are wrapped into one container, which a library reads as columns.

schema            the schema of the writer, with all names known, and what of it the columns ask for
plain             the same bytes by a schema of fewer types: for what the parser does not know something that it does
container         records as one file of Avro, and back
conversions       from what the parser gives to the type of a column
decimals          decimals as Avro has them: the bytes of a number, the greatest first
reader            both ways of reading: a batch, and one record
writer            rows as records
generated_schema  the schema of an output, from its columns
columns           the other way round
schema_parser     what CREATE STREAM asks
"""
