"""The tests of the TypeScript SDK, which are in sdk/typescript/test, run by Node's own runner."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .node_programs import SDK, copied, done, needs_node, ran

pytestmark = [pytest.mark.socket, pytest.mark.slow, needs_node]


def test_its_own_tests_pass_and_none_is_left_out(tmp_path: Path) -> None:
    package = copied(tmp_path)
    done(["npm", "run", "--silent", "pretest"], package)
    files = sorted(str(path) for path in (package / "build" / "test").glob("*.test.js"))
    assert len(files) == len(list((package / "test").glob("*.test.ts")))
    result = ran(["node", "--test", "--test-reporter=spec", *files], package)
    assert result.returncode == 0, result.stdout + result.stderr
    counted = dict(re.findall(r"^\S (\w+) (\d+)$", result.stdout, re.MULTILINE))
    assert int(counted["pass"]) > 0
    assert (counted["skipped"], counted["todo"], counted["cancelled"]) == ("0", "0", "0")


def test_it_is_formatted(tmp_path: Path) -> None:
    prettier = SDK / "node_modules" / "prettier" / "bin" / "prettier.cjs"
    done(["node", str(prettier), "--check", "src", "test", "package.json"], copied(tmp_path))
