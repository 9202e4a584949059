"""The formats of records: how the bytes of a value, or of a key, hold the members of a row. JSON is the default.

A format is a file of this package, and its ``FormatKind`` in ``registry.FORMATS``:

1. A **reader** (``interface.MemberReader``), made for some members of one stream. It reads a batch at once, or says
   which values need a closer look (``NeedsRowDecoding``); it looks at one value closely, and says what is wrong with it
   (``RecordRejected``). Where the first gives an answer, the second gives the same. ``changelog.decode`` does the
   rest: it takes out what is declined, reads the others again at once, and those taken out one by one.
2. A **writer** (``interface.MemberWriter``), from a table of rows to a binary array.
3. A ``FormatKind``: its name, how each dialect calls it (``data_format`` of Timeplus, ENCODE of RisingWave), its
   options with their names in each dialect. The statements, their refusals and the docs are made of that.

What a record *means* is not the business of a format: tombstones, deltas, primary keys that stand in the key, former
names, defaults of deleted rows are done once, in ``changelog.row_reader``, for all of them.

A format with schemas by id asks the ``SchemaSource`` that it is handed; None where the host has none. This room opens
no connection. ``Decoder`` and ``encode`` hand on the source that they are given. It pickles, as the decoder does.
"""
