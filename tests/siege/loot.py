"""What a stranger is after: files outside of the data folder, each with a mark that no answer may have."""

from __future__ import annotations

from pathlib import Path

MARK = "7f3c-loot-b1"
FILES = ("x.csv", "x.tsv", "x.json", "x.jsonl", "x.ndjson", "x.txt", "x.conf", "x.db")


def laid(outside: Path) -> None:
    outside.mkdir()
    for name in FILES:
        (outside / name).write_text(f'{{"secret": "{MARK}"}}\n' if "json" in name else f"secret\n{MARK}\n")
