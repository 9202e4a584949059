"""The server: documents of an editor, each looked at a moment after it has changed; what is asked of their words."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from lsprotocol import types
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from pygls.lsp.server import LanguageServer

from dovetail.changelog.errors import Interrupted
from dovetail.changelog.work.interruption import Interruption
from dovetail.services.completion import NameCompleter
from dovetail.services.lsp.analysis import Analyst, Finding, dialect_said
from dovetail.services.lsp.file_catalog import FileCatalog
from dovetail.services.lsp.hover import hover
from dovetail.services.lsp.positions import Lines
from dovetail.sql.catalog import Relation
from dovetail.sql.syntax.parse import pieces
from dovetail.sql.syntax.rules import Rules

Stack = Callable[[], Sequence[Relation] | None]
"""The relations of the stack that runs; None where none does."""
_PAUSE_S = 0.25
"""So long nobody must have typed before a document is looked at."""
_KINDS = {
    "name": types.CompletionItemKind.Class,
    "column": types.CompletionItemKind.Field,
    "function": types.CompletionItemKind.Function,
    "setting": types.CompletionItemKind.Property,
}


class OpenFile:
    """A document: what is known of it, and the look at it that is under way."""

    def __init__(self) -> None:
        self.analyst = Analyst()
        self.interruption = Interruption()
        self.task: asyncio.Task[None] | None = None

    def stop(self) -> None:
        self.interruption.ask()
        if self.task is not None:
            self.task.cancel()


class SqlServer(LanguageServer):
    """Of files of SQL. One thread looks at them in turn; another answers what is asked meanwhile."""

    def __init__(self, version: str, stack: Stack) -> None:
        super().__init__("dovetail", version, types.TextDocumentSyncKind.Full)
        self._stack = stack
        self._rules: Rules | None = None
        self._files: dict[str, OpenFile] = {}
        self._worker = ThreadPoolExecutor(max_workers=1)
        self._on(types.INITIALIZE, self._initialize)
        self._on(types.TEXT_DOCUMENT_DID_OPEN, self._changed)
        self._on(types.TEXT_DOCUMENT_DID_CHANGE, self._changed)
        self._on(types.TEXT_DOCUMENT_DID_CLOSE, self._closed)
        self._on(types.TEXT_DOCUMENT_COMPLETION, self._complete, types.CompletionOptions(trigger_characters=[".", " "]))
        self._on(types.TEXT_DOCUMENT_HOVER, self._hover)

    def _on(self, name: str, answer: Callable[..., object], options: object = None) -> None:
        # It is marked with the name, which a method cannot be.
        self.feature(name, options)(partial(answer))

    def start_io(self, *streams: object) -> None:
        """Until the input ends."""
        try:
            super().start_io()
        finally:
            for file in self._files.values():
                file.interruption.ask()
            self._worker.shutdown(wait=False, cancel_futures=True)

    def _initialize(self, params: types.InitializeParams) -> None:
        options = params.initialization_options
        said = options.get("dialect") if isinstance(options, dict) else None
        self._rules = Rules(said) if said in list(Rules) else None

    def _changed(self, params: types.DidOpenTextDocumentParams | types.DidChangeTextDocumentParams) -> None:
        uri = params.text_document.uri
        file = self._files.setdefault(uri, OpenFile())
        file.stop()
        file.task = asyncio.ensure_future(self._look_at(uri, file))

    def _closed(self, params: types.DidCloseTextDocumentParams) -> None:
        self._files.pop(params.text_document.uri, OpenFile()).stop()
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(params.text_document.uri, []))

    async def _look_at(self, uri: str, file: OpenFile) -> None:
        await asyncio.sleep(_PAUSE_S)
        document = self.workspace.get_text_document(uri)
        text, version, file.interruption = document.source, document.version, Interruption()
        look = partial(self._findings, file.analyst, text, file.interruption)
        with suppress(Interrupted):
            found = await asyncio.get_running_loop().run_in_executor(self._worker, look)
            lines = Lines(text, self.workspace.position_codec)
            diagnostics = [
                types.Diagnostic(
                    range=lines.range(one.start, one.end),
                    message=one.message,
                    severity=types.DiagnosticSeverity.Error if one.certain else types.DiagnosticSeverity.Warning,
                    source="dovetail",
                )
                for one in found
            ]
            self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, diagnostics, version))

    def _findings(self, analyst: Analyst, text: str, interruption: Interruption) -> Sequence[Finding]:
        with interruption.of_this_thread():
            return analyst.findings(text, dialect_said(text) or self._rules or Rules.TIMEPLUS, self._stack())

    def _complete(self, params: types.CompletionParams) -> types.CompletionList:
        here = self._here(params)
        document = Document(here.statement, here.offset)
        offers = NameCompleter(here.catalog, here.rules).get_completions(document, CompleteEvent())
        items = [
            types.CompletionItem(
                label=one.text,
                kind=_KINDS.get(one.display_meta_text, types.CompletionItemKind.Keyword),
                detail=one.display_meta_text or None,
                sort_text=f"{place:05}",
                text_edit=types.TextEdit(here.range(here.offset + one.start_position, here.offset), one.text),
            )
            for place, one in enumerate(offers)
        ]
        return types.CompletionList(is_incomplete=True, items=items)

    def _hover(self, params: types.HoverParams) -> types.Hover | None:
        here = self._here(params)
        said = hover(here.statement, here.offset, here.catalog, here.rules)
        if said is None:
            return None
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, said.text), here.range(said.start, said.end))

    def _here(self, params: types.CompletionParams | types.HoverParams) -> _Here:
        uri = params.text_document.uri
        text = self.workspace.get_text_document(uri).source
        lines = Lines(text, self.workspace.position_codec)
        offset, parts = lines.offset(params.position), pieces(text)
        number = next((number for number, part in enumerate(parts) if offset < part.after), len(parts))
        start = min([part.start for part in parts[number : number + 1]] + [offset])
        end = max([part.end for part in parts[number : number + 1]] + [offset])
        catalog = self._files[uri].analyst.catalog_at(number)
        return _Here(lines, start, text[start:end], offset - start, catalog, dialect_said(text) or self._rules)


@dataclass(frozen=True)
class _Here:
    """A place of a document: the ``statement`` that begins at ``start``, and the ``offset`` in it."""

    lines: Lines
    start: int
    statement: str
    offset: int
    catalog: FileCatalog
    rules: Rules | None

    def range(self, start: int, end: int) -> types.Range:
        """Of a part of the statement."""
        return self.lines.range(self.start + start, self.start + end)
