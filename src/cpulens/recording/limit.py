"""The size limit of recordings: a thread looks at the open ones ten times a second."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cpulens.recording.recorder import Recording

_PERIOD_S: Final = 0.1

_watched: weakref.WeakSet[Recording] = weakref.WeakSet()
_thread: threading.Thread | None = None
_wake: Final = threading.Event()
_lock: Final = threading.Lock()


def watch_size(recording: Recording) -> None:
    """Stop `recording` when its lines reach its `max_bytes`. The thread sleeps while no recording is open."""
    global _thread
    with _lock:
        _watched.add(recording)
        if _thread is None or not _thread.is_alive():  # the first, or a forked child's own
            _thread = threading.Thread(target=_watch, name="cpulens-size-limit", daemon=True)
            _thread.start()
    _wake.set()


def _watch() -> None:
    while True:
        _wake.wait()
        threading.Event().wait(_PERIOD_S)
        with _lock:
            open_now = [recording for recording in _watched if recording.size_bytes() > 0 or recording.is_open]
            _watched.clear()
            _watched.update(open_now)
            if not open_now:
                _wake.clear()
        for recording in open_now:
            if recording.size_bytes() >= recording.max_bytes:
                recording.stop_for_size()
