"""A broken server: `python tests/fuzz/broken_servers NAME app-server`.

Start it by its path, since a server's working directory is not the project's.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from tests.fuzz.broken_servers.serving import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
