"""A server with one bug: `python serve.py NAME app-server`, or an address for one that listens.

Start it by its path, since a server's working directory is not the project's.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.conformance.bugs.serving import main

if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
