"""The documents as a site: `python -m tools.site`, run by `make site`.

mkdocs is called as a program: only `make site` installs it.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def slugify(heading: str, separator: str = "-") -> str:
    """Return the anchor that GitHub gives to a heading; the site has the same."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", separator)
