"""The schema registry: schemas by id and by subject, in the API that Confluent's clients speak."""
