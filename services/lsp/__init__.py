"""``dovetail lsp``: what an editor is told of a file of statements while somebody writes it. Nothing in it is run."""
