"""``python -m cpulens.backends.xeon.run_cpu`` is the command ``run_cpu``."""

from __future__ import annotations

import sys

from run_cpu.cli import create_args, main

__all__ = ["create_args", "main"]

if __name__ == "__main__":
    sys.exit(main())
