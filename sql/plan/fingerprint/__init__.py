"""Whether a checkpoint fits a plan: a canonical form of what state depends on, and a hash over it."""
