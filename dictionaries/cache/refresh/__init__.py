"""How entries are forgotten before their time: on command, by messages of other workers, by a feed."""
