"""`python -m reference_server`: the `agent` command."""

import sys

from reference_server.cli import main

sys.exit(main())
