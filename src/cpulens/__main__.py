"""``python -m cpulens`` is the command ``cpulens``."""

import sys

from cpulens.cli import main

if __name__ == "__main__":
    sys.exit(main())
