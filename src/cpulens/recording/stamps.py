"""Ask oneDNN for time stamps: it reads a variable when it prints its first line, and keeps to it."""

from __future__ import annotations

import os
from typing import Final

#: Both spellings: the first since oneDNN 2.5, the second before.
VARIABLES: Final = ("ONEDNN_VERBOSE_TIMESTAMP", "DNNL_VERBOSE_TIMESTAMP")


class Stamps:
    """The variables as C sees them are set until `put_back`, unless the user set one; `os.environ` is not touched.

    A child process started meanwhile inherits the wish for stamps, but no verbose level.
    """

    def __init__(self) -> None:
        self._set = not any(name in os.environ for name in VARIABLES)
        if self._set:
            for name in VARIABLES:
                os.putenv(name, "1")

    def put_back(self) -> None:
        """Take the variables out again."""
        if self._set:
            for name in VARIABLES:
                os.unsetenv(name)
