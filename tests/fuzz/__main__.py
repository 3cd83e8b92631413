"""The fuzzer's command: `python tests/fuzz --minutes 5`. Read `fuzzer/__init__.py` first."""

import sys

from fuzzer.cli import main

if __name__ == "__main__":
    sys.exit(main())
