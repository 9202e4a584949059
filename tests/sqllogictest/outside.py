"""What a suite asks for that is no matter of Dovetail's: it is listed with its reason, and not judged."""

from __future__ import annotations

import re

_OF_STATEMENTS = {
    r"set\b": "session variables of the peer",
    r"(show|describe|desc|explain)\b": "texts of the peer's catalog and plans",
    r"(flush|wait|recover|vacuum|refresh|discard)\b": "orders to the peer's storage",
    r"(begin|commit|rollback|abort|start\s+transaction)\b": "transactions",
    r"(grant|revoke|(create|drop|alter)\s+(user|role)|reassign)\b": "users and rights",
    r"((create|drop|alter)\s+database|alter\s+schema)\b": "databases",
    r"(create|drop|alter)\s+(connection|secret|subscription)\b": "connections, secrets, subscriptions",
    r"(create|drop|alter)\s+sink\b": "sinks",
    r"(create|drop|alter)\s+(or\s+replace\s+)?(aggregate|function)\b": "functions in the peer's languages",
    r"(prepare|execute|deallocate|declare|fetch|close|copy|use|comment|cancel|kill|backup)\b": "administration",
    r"(alter\s+system|reindex|analyze)\b": "administration",
    r"alter\s+(table|materialized\s+view|view|source|index)\s+.*\b("
    r"set\s+(parallelism|source_rate_limit|backfill|config|schema|streaming|adaptive|dml)|owner\s+to|set\s+to|rename\s+to"
    r"|swap\s+with|connector|reset)\b": "administration",
    r"(create|drop|alter)\s+(table|source)\b(?s:.*)\bconnector\s*=": "external connectors",
    r"(create|drop|alter)\s+source\b": "external connectors",
}
_SYSTEM_FUNCTIONS = (
    r"pg_\w+|rw_\w+|has_\w+_privilege|col_description|obj_description|shobj_description|current_setting|set_config"
    r"|current_schema\w*|current_user|session_user|current_role|current_database|current_catalog|inet_\w+|version(?=\s*\(\s*\))"
    r"|format_type|to_regclass|_pg_\w+|table_description"
)
_ANYWHERE = {
    r"\b(rw_catalog|pg_catalog|information_schema)\b": "the peer's system catalogs",
    r"\b(from|join)\s+(rw_|pg_)\w+": "the peer's system catalogs",
    r"\breg(class|proc|type)\b": "the peer's system catalogs",
    rf"\b({_SYSTEM_FUNCTIONS})\s*\(": "the peer's system functions",
    r"\b(current_user|session_user|current_role|current_catalog)\b": "the peer's system functions",
    r"__internal|\b_rw_\w+|\b_row_id\b|\$\{\w+\}": "the peer's internal columns and tables",
    r"for\s+system_(time|version)\s+as\s+of\s+(?!proctime)": "time travel",
    r"\bvector\s*\(\s*\d+\s*\)|::\s*vector\b": "vector search",
    r"\bwebhook\b|\bengine\s*=\s*iceberg": "external connectors",
    r"\b(iceberg_scan|file_scan|postgres_query|mysql_query)\b": "external connectors",
}


def outside(sql: str) -> str:
    """Why a statement is not judged; '' where it is."""
    text = without_comments(sql).strip()
    for pattern, reason in _OF_STATEMENTS.items():
        if re.match(pattern, text, re.IGNORECASE):
            return reason
    bare = without_texts(text)
    for pattern, reason in _ANYWHERE.items():
        if re.search(pattern, bare, re.IGNORECASE):
            return reason
    return ""


def without_comments(sql: str) -> str:
    return re.sub(r"--[^\n]*|/\*.*?\*/", " ", sql, flags=re.DOTALL)


def without_texts(sql: str) -> str:
    """With every literal text empty."""
    return re.sub(r"'(?:[^']|'')*'", "''", sql)
