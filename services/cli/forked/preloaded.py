"""Imports what commands need, for the interpreter that they are forked from; and notes its versions, at the end."""

from __future__ import annotations

import dovetail.services.cli.console
import dovetail.services.cli.following.backfill_bar
import dovetail.services.cli.following.followed_rows
import dovetail.services.cli.forked.command
import dovetail.services.cli.main
import dovetail.services.cli.session_commands
import dovetail.services.cli.stack_commands
import dovetail.services.cli.tail
import dovetail.services.session.verification.verify
import dovetail.services.session.views
import dovetail.sql.planner  # noqa: F401
from dovetail.services.cli.forked import loaded_code

assert not loaded_code.has_changed()
