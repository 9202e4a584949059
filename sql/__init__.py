"""The SQL front: text to statements, statements to plans, names in a catalog."""

from sql.planner import Plan, plan_query, recompute

__all__ = ["Plan", "plan_query", "recompute"]
