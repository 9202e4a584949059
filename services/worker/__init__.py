"""The lookup workers: processes that answer lookup queries, exactly once, spread over the partitions of their inputs.

    supervisor ─┬─ child of query a ── transport ──▶ lanes, one per partition ──▶ transactions
                └─ child of query b

supervisor    keeps a child process for every running query of engine 'faust'; commands, health, metrics
child         one query: plan, tables, Faust app, reports
transport     Faust's consumer, changed to hand over whole fetches of records, from where the lanes want them
lane          the fetches of one partition in order: answered, written and committed in transactions
transactions  the transactional producer of one partition
tables        a ``Lookup`` for every access of a flow; followers feed those that are streams
"""
