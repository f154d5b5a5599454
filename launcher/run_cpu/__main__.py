"""``python -m run_cpu`` is the command ``run_cpu``."""

import sys

from run_cpu.cli import main

if __name__ == "__main__":
    sys.exit(main())
