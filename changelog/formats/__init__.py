"""JSON objects, read a batch at once or one by one, and written; the forms of times. And what a record without a value
says: a heartbeat.
"""
