"""JSON Schema beside JSON: values are read and written as JSON, and their schemas say what the members are.

schema            the members of a schema, as far as it names them
generated_schema  the schema of an output, from its columns
columns           the other way round, of the schemas of others too
schema_parser     what CREATE STREAM asks
"""
