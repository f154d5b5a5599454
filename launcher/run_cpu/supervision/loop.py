"""Wait for descriptors and signals at once."""

from __future__ import annotations

import os
import select
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Loop:
    """Calls a handler for each descriptor that is ready."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._handlers: dict[int, Callable[[], None]] = {}

    def watch(self, descriptor: int, handler: Callable[[], None], events: int = select.POLLIN) -> None:
        """Call `handler` whenever the descriptor is ready (default: to be read)."""
        self._handlers[descriptor] = handler
        self._poll.register(descriptor, events)

    def unwatch(self, descriptor: int) -> None:
        """Stop that; unknown descriptors are fine."""
        if self._handlers.pop(descriptor, None):
            self._poll.unregister(descriptor)

    def pause(self, descriptor: int, paused: bool) -> None:
        """Leave a watched descriptor alone for now, or attend to it again."""
        if descriptor in self._handlers:
            self._poll.modify(descriptor, 0 if paused else select.POLLIN)

    def wait(self, timeout_s: float | None) -> None:
        """Wait until something is ready, and handle all that is."""
        for descriptor, _ in self._poll.poll(None if timeout_s is None else max(0.0, timeout_s) * 1000):
            handler = self._handlers.get(descriptor)
            if handler:
                handler()

    def watch_signals(self, numbers: Iterable[int], handler: Callable[[int], None]) -> None:
        """Call `handler` with the number of each signal that arrives; unblocks all signals of this process."""
        read, write = os.pipe()
        os.set_blocking(read, False)
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        for number in numbers:
            signal.signal(number, lambda *_: None)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        wanted = frozenset(numbers)

        def woken() -> None:
            for number in set(os.read(read, 4096)) & wanted:
                handler(number)

        self.watch(read, woken)
