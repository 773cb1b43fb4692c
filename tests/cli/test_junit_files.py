"""JUnit files fit the schema that CI systems read them by, whatever a run found.

The schema is `tests/schemas/junit.xsd`, in our own words.
"""

import shlex
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import xmlschema
from command_line import call

from tests.processes import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.socket]

SCHEMA: Any = xmlschema.XMLSchema(str(ROOT / "tests/schemas/junit.xsd"))
SERVERS = ROOT / "fixtures/servers"
PLAIN = "turns/plain-turn"
KNOWN = """
[[deviations]]
rule = "turn.completed-once"
reason = "known & <told> \\u001b[1m"
"""


def server(*names: str) -> tuple[str, str]:
    """The options for example servers, the first of which may start the next."""
    words = [word for name in names for word in (sys.executable, str(SERVERS / f"{name}.py"))]
    return "--server-cmd", shlex.join(words)


RUNS = {
    "green": (0, (*server("minimal"), PLAIN, "turns/overrides")),
    "red": (1, (*server("twice", "minimal"), PLAIN)),
    "known": (0, (*server("twice", "minimal"), PLAIN, "--baseline", "known.toml")),
    "not-offered": (0, (*server("minimal"), "approvals/", "--require", "core")),
    "no-text": (1, (*server("broken/invalid_utf8"), PLAIN)),
    "commands-to-the-runner": (1, (*server("broken/speaks_to_the_runner"), PLAIN)),
    "no-server": (1, ("--server-cmd", f"{sys.executable} -c pass", PLAIN)),
    "workers": (1, (*server("twice", "minimal"), PLAIN, "turns/overrides", "-n", "2")),
    "races": (0, (*server("minimal"), "--race", "interrupt@turn:started", PLAIN)),
}


@pytest.mark.parametrize("case", RUNS)
def test_the_file_of_a_run_fits_its_schema(case: str, tmp_path: Path) -> None:
    status, words = RUNS[case]
    (tmp_path / "known.toml").write_text(KNOWN, "utf-8")
    said = call("harness", "run", *words, "--junit", "report.xml", cwd=tmp_path)
    file = tmp_path / "report.xml"
    assert file.exists(), said.out + said.err
    problems = [str(one) for one in SCHEMA.iter_errors(str(file))]
    assert not problems, problems[0]
    suite = ElementTree.parse(file).getroot()[0]
    counts = {name: int(suite.attrib[name]) for name in ("tests", "failures", "errors", "skipped")}
    cases = list(suite.iter("testcase"))
    found = {"tests": len(cases)} | {
        f"{name}s" if name != "skipped" else name: len(list(suite.iter(name)))
        for name in ("failure", "error", "skipped")
    }
    assert counts == found
    assert said.status == status, said.out
    assert bool(counts["failures"] + counts["errors"]) is bool(status)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ('classname="rules.a" ', ""),
        ('time="0.1"', 'time="soon"'),
        ('name="b"', 'name="a"'),
        ("<failure>", '<failure level="MUST">'),
        ("<skipped />", "<ignored />"),
        ("<skipped />", "<skipped /><failure />"),
        ('tests="2"', 'tests="two"'),
        ('hostname="h"', 'verdict="GREEN"'),
    ],
)
def test_the_schema_refuses_an_invalid_file(right: str, wrong: str) -> None:
    text = (
        '<testsuites><testsuite name="s" tests="2" failures="1" errors="0" time="0.1" '
        'timestamp="2026-11-23T07:00:00+00:00" hostname="h">'
        '<testcase classname="rules.a" name="a" time="0.1"><skipped /></testcase>'
        '<testcase classname="rules.a" name="b" time="0.1"><failure>x</failure></testcase>'
        "</testsuite></testsuites>"
    )
    assert SCHEMA.is_valid(text)
    assert right in text
    assert not SCHEMA.is_valid(text.replace(right, wrong, 1))
