"""Output that is predicted from a command's words, compared with that of a shell."""

import shlex
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from harness.judge.rules.shared.predicted_output import count_lines, predict_output, script_of

CERTAIN = (
    "echo one",
    "echo one; echo two >&2",
    "echo one two   three && echo 'four;  five' && echo \"six's\"",
    "echo a.b,c/d:e@f+g-h%",
    "echo one > made.txt; echo two >> made.txt; echo three 1>&2",
    "echo a 1> made.txt; echo 2 >&2",
    "printf 'one\\ntwo\\n'",
    'printf "one\\ttab\\n"',
    "printf 'caf\\303'; printf '\\251 au lait\\n'",
    "printf 'no end'",
    "seq 3",
    "seq 4 6",
    "true && sleep 0 && seq 2",
    'for i in 1 2 3; do echo "round $i"; done',
    "for word in a b; do echo ${word}; echo $word-$word >&2; done; echo end",
    "for i in $(seq 2 4); do printf 'x\\n'; done",
    "for i in 1 2; do\necho $i\ndone\necho end",
    "mkdir sub && cd sub && echo there",
    "touch made.txt; echo a",
    "rm nothing-here; echo a",
    "echo a; exit 0",
    "head -c 5000 /dev/zero | tr '\\0' x",
    "true",
)
UNCERTAIN = (
    "cat notes.txt",
    "echo $HOME",
    "echo `date`",
    "echo *",
    "echo ~",
    "echo {a,b}",
    "echo -n a",
    "echo 'a\\nb'",
    "echo a | cat",
    "echo a || echo b",
    "echo a &",
    "echo a # b",
    'echo "$x"',
    "echo a 3>&2",
    "echo two2>&2",
    "printf '%s' a",
    'printf "a\\\\nb"',
    "cd nowhere && echo a; echo b",
    "seq 3; echo a",
    "exit 0; echo a",
    "printf a; echo b >&2",
    "printf '\\377\\n'",
    "x=1; echo a",
    "if true; then echo a; fi",
    "for i in $(ls); do echo $i; done",
    "echo 'a",
    "",
    ";",
)


@pytest.mark.socket
@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize("command", CERTAIN)
def test_a_shell_prints_what_is_read_off_the_words(
    command: str, shell: str, tmp_path: Path
) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"no {shell} here")
    ran = subprocess.run([program, "-c", command], cwd=tmp_path, capture_output=True, check=False)
    printed = predict_output(command)
    assert printed is not None
    assert ran.returncode == 0
    assert printed.stdout == ran.stdout.decode()
    # A helper that fails on the way may say so, beside what is certain.
    assert not printed.stderr_lines - count_lines(ran.stderr.decode())


@pytest.mark.parametrize("command", UNCERTAIN)
def test_uncertain_output_is_left_open(command: str) -> None:
    assert predict_output(command) is None


@pytest.mark.parametrize("command", CERTAIN)
def test_a_shell_may_stand_around_the_script(command: str) -> None:
    assert script_of(shlex.join(["/bin/bash", "-lc", command])) == command
    assert predict_output(shlex.join(["sh", "-c", command])) == predict_output(command)
    assert script_of(f"perl -c {shlex.quote(command)}") != command


def test_streams_are_told_apart() -> None:
    printed = predict_output("echo one; echo two >&2; echo one")
    assert printed is not None
    assert (printed.stdout_lines, printed.stderr_lines) == (Counter(one=2), Counter(two=1))
    assert printed.lines == Counter(one=2, two=1)
    assert len(printed) == len("one\none\ntwo\n")
