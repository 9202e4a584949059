"""An editor: starts a language server as a process, and speaks its protocol over standard input and output."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

SERVER = (sys.executable, "-m", "dovetail.services.cli.start", "lsp")
URI = "file:///shop.sql"
_WAIT_S = 120


class Editor:
    """With one document open. Places are lines and UTF-16 units, from 0."""

    def __init__(self, process: subprocess.Popen[bytes], options: Mapping[str, Any]) -> None:
        self.process = process
        self._numbers = count(1)
        self._heard: Queue[dict[str, Any] | None] = Queue()
        Thread(target=self._listen, daemon=True).start()
        self.said = self.ask("initialize", processId=None, rootUri=None, capabilities={}, initializationOptions=options)
        self.tell("initialized")
        self._version = 0

    def open(self, text: str) -> list[dict[str, Any]]:
        """What is wrong with a document."""
        self._version = 1
        document = {"uri": URI, "languageId": "sql", "version": 1, "text": text}
        self.tell("textDocument/didOpen", textDocument=document)
        return self.diagnostics()

    def change(self, *texts: str) -> list[dict[str, Any]]:
        """What is wrong with the last of them, each of which is told at once after the one before."""
        for text in texts:
            self._version += 1
            document = {"uri": URI, "version": self._version}
            self.tell("textDocument/didChange", textDocument=document, contentChanges=[{"text": text}])
        return self.diagnostics()

    def diagnostics(self) -> list[dict[str, Any]]:
        """Those of the newest version."""
        while True:
            heard = self._next()
            told = heard["params"] if heard.get("method") == "textDocument/publishDiagnostics" else {}
            if told.get("version") == self._version:
                return list(told["diagnostics"])

    def offered(self, line: int, character: int) -> list[str]:
        return [item["label"] for item in self._at("completion", line, character)["items"]]

    def hover(self, line: int, character: int) -> str:
        found = self._at("hover", line, character)
        return "" if found is None else str(found["contents"]["value"])

    def _at(self, what: str, line: int, character: int) -> Any:
        position = {"line": line, "character": character}
        return self.ask(f"textDocument/{what}", textDocument={"uri": URI}, position=position)

    def ask(self, method: str, **params: Any) -> Any:
        number = next(self._numbers)
        self._send({"id": number, "method": method, "params": params or None})
        while True:
            heard = self._next()
            if heard.get("id") == number:
                assert "error" not in heard, heard
                return heard["result"]

    def tell(self, method: str, **params: Any) -> None:
        self._send({"method": method, "params": params})

    def close(self) -> int:
        """How the server ends when it is told to."""
        self.ask("shutdown")
        self._send({"method": "exit"})
        return self.process.wait(_WAIT_S)

    def _send(self, message: Mapping[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()

    def _next(self) -> dict[str, Any]:
        heard = self._heard.get(timeout=_WAIT_S)
        assert heard is not None, "the server has ended"
        return heard

    def _listen(self) -> None:
        assert self.process.stdout is not None
        while header := self.process.stdout.readline():
            size = int(header.removeprefix(b"Content-Length:"))
            while self.process.stdout.readline().strip():
                pass
            self._heard.put(json.loads(self.process.stdout.read(size)))
        self._heard.put(None)


@contextmanager
def editor(
    folder: Path,
    command: Sequence[str] = SERVER,
    options: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Editor]:
    """One whose server is started in ``folder``, by default with no stack there."""
    alone = {"DOVETAIL_DATA_DIR": str(folder / ".dovetail")}
    surroundings, pipe = os.environ | dict(environment or alone), subprocess.PIPE
    with subprocess.Popen(command, cwd=folder, env=surroundings, stdin=pipe, stdout=pipe) as process:
        try:
            yield Editor(process, options or {})
        finally:
            process.kill()


def started_by(settings: str) -> tuple[list[str], Mapping[str, Any]]:
    """The command of the server, and its options, in the settings of VS Code (JSON) or of Neovim (Lua)."""
    if settings.startswith("{"):
        found = json.loads(settings)
        command = [found["glspc.server.command"], *found["glspc.server.commandArguments"]]
        return command, found["glspc.server.initializationOptions"]
    (command,) = re.findall(r"cmd = \{([^}]*)\}", settings)
    (options,) = re.findall(r"init_options = \{([^}]*)\}", settings)
    return re.findall(r'"([^"]*)"', command), dict(re.findall(r'(\w+) = "([^"]*)"', options))
