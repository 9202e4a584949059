"""Protobuf: a library reads each value as a message, and columns are made of the members of all; rows are written a
column at a time.

schema            the messages of a schema, and which of them a value is
builders          from the values of a member to a column
reader            both ways of reading: a batch, and one record
generated_schema  the schema of an output, from its columns
varints           whole numbers as bytes
writer            rows as messages
schema_parser     what CREATE STREAM asks
"""
