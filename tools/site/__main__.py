"""Build of the site: its pages into a temporary folder, mkdocs, and the check of what was built."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from string import Template

from harness.protocol.spec.loading import load_book
from tools.site import ROOT
from tools.site.built import faults
from tools.site.generated import (
    DRAWN,
    decisions_page,
    id_places,
    rules_page,
    write_scenario_pages,
)
from tools.site.pages import write, write_repository_pages

SITE = ROOT / ".harness" / "site"
HERE = Path(__file__).parent


def main() -> int:
    """Build the site in .harness/site; return an exit status, after saying what is wrong."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        status = _play(folder / "play") or _build(folder, SITE)
    wrong = [] if status else list(faults(SITE))
    sys.stderr.writelines(f"{line}\n" for line in wrong)
    if not status and not wrong:
        sys.stdout.write(
            f"{SITE.relative_to(ROOT)}/index.html: no dead link, nothing from outside\n"
        )
    return 1 if wrong else status


def _play(folder: Path) -> int:
    """Play the scenarios that are drawn on the reference server; return the exit status."""
    programs = Path(sys.executable).parent
    driver = f"{sys.executable} fixtures/sdk_drivers/python_driver.py"
    command = [
        *(programs / "harness", "run", "--target", "reference", "--dir", folder),
        *("--server-cmd", f"{programs / 'agent'} app-server"),
        *("--agent-cmd", programs / "agent", "--sdk-cmd", driver, *DRAWN),
    ]
    said = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if said.returncode:
        sys.stderr.buffer.write(said.stdout)
    return said.returncode


def _build(folder: Path, site: Path) -> int:
    """Write the pages and call mkdocs; return its exit status."""
    pages, book = folder / "pages", load_book()
    places = id_places(book)
    write_repository_pages(pages, places)
    write(pages / "docs/rules.md", rules_page(book, places))
    write(pages / "docs/adr/index.md", decisions_page())
    areas = write_scenario_pages(pages, folder / "play/traces/reference", places)
    for name in ("site.css", "site.js"):
        write(pages / name, (HERE / name).read_text("utf-8"))
    settings = Template((HERE / "mkdocs.yml").read_text("utf-8"))
    named = {"PAGES": str(pages), "SITE": str(site), "SCENARIOS": str(areas)}
    write(folder / "mkdocs.yml", settings.substitute(named))
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file"]
    # Not quiet: then it would neither print its warnings nor count them.
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(
        [*command, folder / "mkdocs.yml"], env=environment, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
