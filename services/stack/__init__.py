"""The local stack: real servers as child processes of one supervisor.

Stack            what a person or a test calls: up, down, status, logs
stack_supervisor the process that starts the children, watches them and ends them
components       what can be started, and in which order; one file per component
state            .dovetail/stack.json, the supervisor's account of what runs
"""

from dovetail.services.stack.stack import ComponentStatus, Stack
from dovetail.services.stack.temporary import temporary_stack

__all__ = ["ComponentStatus", "Stack", "temporary_stack"]
