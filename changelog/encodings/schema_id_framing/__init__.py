"""Values that begin with the id of their schema, in the wire format of Confluent's serializers."""
