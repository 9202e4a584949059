"""Hearing the invalidations that other workers publish."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event

import redis
import structlog

from dovetail.changelog.work.backoff import Backoff
from dovetail.changelog.work.supervised_thread import SupervisedThread
from dovetail.dictionaries.cache.cold.invalidation_messages import InvalidationMessage, decode_message
from dovetail.dictionaries.cache.cold.redis_client import RedisFault, fault_of

_WAIT_S = 0.2
_SILENT_WAITS = 15
_PAUSES = Backoff(first_s=0.05, longest_s=1.0)

_log = structlog.get_logger(__name__)


class Listener:
    """A thread that subscribes to a channel, and says when it may have missed something.

    on_message  a message came
    on_gap      from now on, or up to now, messages may have been missed: nothing held can be trusted

    A connection that gives nothing for 3 s although it is pinged counts as lost: a server that hangs tells nobody. What
    comes earlier is late, and was not missed. Waits are counted, and no clock is asked: a process that stood still
    finds its answers there.
    """

    def __init__(
        self,
        client: redis.Redis,
        channel: str,
        on_message: Callable[[InvalidationMessage], None],
        on_gap: Callable[[], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        self._client = client
        self._channel = channel
        self._on_message = on_message
        self._on_gap = on_gap
        self._tried = Event()
        self._reported: RedisFault | None = None
        self.is_listening = False
        self.thread = SupervisedThread(f"listen {channel}", self._run, failed)
        self.thread.start()

    def wait(self, timeout_s: float) -> None:
        """Until the first attempt to subscribe has ended, one way or the other."""
        self._tried.wait(timeout_s)

    def close(self) -> None:
        self.thread.close()
        self._client.close()

    def _run(self) -> None:
        failures = 0
        while not self.thread.closing.is_set():
            listened = False
            try:
                self._listen()
            except (redis.RedisError, OSError) as error:
                self._reported = self._tell_once(fault_of(error))
            finally:
                listened, self.is_listening = self.is_listening, False
                if listened:
                    self._on_gap()
            failures = 0 if listened else failures + 1
            self._tried.set()
            self.thread.closing.wait(_PAUSES.pause_s(failures))

    def _tell_once(self, fault: RedisFault) -> RedisFault:
        """What goes on is not said again: it is tried every second."""
        if fault != self._reported:
            say = _log.warning if fault.refuses else _log.info
            say("dictionary.listener_lost", channel=self._channel, reason=fault.what, fix=fault.fix)
        return fault

    def _listen(self) -> None:
        with self._client.pubsub() as subscription:  # type: ignore[no-untyped-call]
            subscription.subscribe(self._channel)
            silent = 0
            while not self.thread.closing.is_set():
                message = subscription.get_message(timeout=_WAIT_S)
                if message is None:
                    silent += 1
                    if silent > _SILENT_WAITS:
                        raise redis.TimeoutError("no answer to pings")
                    subscription.ping()
                    continue
                silent = 0
                if message["type"] == "subscribe":
                    # What was published before this moment was missed; what comes after it is heard.
                    self._on_gap()
                    self.is_listening = True
                    self._reported = None
                    self.thread.mark_healthy()
                    self._tried.set()
                elif message["type"] == "message":
                    self._tell(message["data"])

    def _tell(self, value: bytes) -> None:
        try:
            message = decode_message(value)
        except (KeyError, TypeError, ValueError):
            _log.warning("dictionary.message_refused", channel=self._channel)
            self._on_gap()
            return
        self._on_message(message)
