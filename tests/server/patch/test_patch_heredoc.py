"""Shell commands that are a patch and do nothing else."""

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_server.patch.heredoc import heredoc_patch

PATCH = '*** Begin Patch\n*** Add File: it\'s\n+"$x" `y` \\n\n*** End Patch\n'
HEREDOC = f"apply_patch <<'EOF'\n{PATCH}EOF"


@pytest.mark.parametrize(
    ("command", "folder"),
    [
        (HEREDOC, None),
        (f"\n  {HEREDOC}\n", None),
        (HEREDOC.replace("apply_patch", "applypatch"), None),
        (HEREDOC.replace("'EOF'", '"EOF"'), None),
        (HEREDOC.replace("'EOF'", "EOF"), None),
        (HEREDOC.replace("EOF", "PATCH_1"), None),
        (HEREDOC.replace(" <<", "<<"), None),
        (HEREDOC.replace("<<", "<< "), None),
        (f"cd sub && {HEREDOC}", "sub"),
        (f"cd /a/b-c.d &&{HEREDOC}", "/a/b-c.d"),
        (f"cd 'a b' && {HEREDOC}", "a b"),
        (f'cd "a b"/c &&\n{HEREDOC}', "a b/c"),
        (f"cd a\\ b && {HEREDOC}", "a b"),
        (f"cd .. && {HEREDOC}", ".."),
        (shlex.join(["bash", "-lc", HEREDOC]), None),
        (shlex.join(["/bin/bash", "-lc", f"cd sub && {HEREDOC}\n"]), "sub"),
        (shlex.join(["sh", "-c", HEREDOC]), None),
        (shlex.join(["apply_patch", PATCH]), None),
    ],
)
def test_a_patch_is_found_in_a_command(command: str, folder: str | None) -> None:
    assert heredoc_patch(command) == (PATCH, folder)


def test_a_script_in_double_quotes_is_read_as_the_shell_reads_it() -> None:
    command = 'bash -lc "apply_patch <<\'EOF\'\n+a \\"b\\" \\$c \\\\ \\d\nEOF"'
    assert heredoc_patch(command) == ('+a "b" $c \\ \\d\n', None)


@pytest.mark.parametrize(
    "command",
    [
        "",
        "apply_patch",
        "apply_patch --help",
        "apply_patch < file",
        f"echo x; {HEREDOC}",
        f"echo x && {HEREDOC}",
        f"{HEREDOC}\necho x",
        f"{HEREDOC}\nEOF",
        HEREDOC.replace("<<'EOF'", "<<'EOF' && echo x"),
        HEREDOC.replace("<<'EOF'", "<<'EOF' > log"),
        HEREDOC.replace("<<'EOF'", "<<-'EOF'"),
        HEREDOC.replace("<<'EOF'", "<<'EOF"),
        HEREDOC.removesuffix("EOF"),
        HEREDOC.removesuffix("EOF") + " EOF",
        f"sudo {HEREDOC}",
        f"X=1 {HEREDOC}",
        f"my{HEREDOC}",
        f"cd $HOME && {HEREDOC}",
        f"cd ~ && {HEREDOC}",
        f"cd `pwd` && {HEREDOC}",
        f'cd "$(pwd)" && {HEREDOC}',
        f"cd a* && {HEREDOC}",
        f"cd - && {HEREDOC}",
        f"cd '' && {HEREDOC}",
        f"cd a b && {HEREDOC}",
        f"cd a; {HEREDOC}",
        f"cd a || {HEREDOC}",
        f"cd a & {HEREDOC}",
        f"cd a\n&& {HEREDOC}",
        f"cd a && cd b && {HEREDOC}",
        "cd a && echo x",
        shlex.join(["bash", "-lc", HEREDOC]) + " extra",
        shlex.join(["bash", "-lc", HEREDOC]) + "; echo x",
        shlex.join(["bash", "-x", "-c", HEREDOC]),
        shlex.join(["bash", "-lc", shlex.join(["bash", "-lc", HEREDOC])]),
        'bash -lc "apply_patch <<EOF\n$(cat x)\nEOF"',
        "bash -lc 'apply_patch <<EOF",
        "apply_patch 'no patch'",
        shlex.join(["apply_patch", PATCH, PATCH]),
    ],
)
def test_anything_else_is_for_the_shell(command: str) -> None:
    assert heredoc_patch(command) is None


_PIECES = st.sampled_from(
    [
        "apply_patch",
        "cd",
        "bash -lc",
        " ",
        "\n",
        "<<",
        "'EOF'",
        "EOF",
        "&&",
        "'",
        '"',
        "\\",
        "$",
        "x",
    ]
)


@settings(deadline=None)
@given(st.lists(_PIECES | st.text(max_size=3), max_size=14))
def test_no_command_breaks_it(pieces: list[str]) -> None:
    found = heredoc_patch("".join(pieces))
    assert found is None or isinstance(found[0], str)


@pytest.mark.slow
@pytest.mark.socket
@settings(deadline=None)
@given(
    st.lists(st.sampled_from(["+a", "$x", "`", "'", '"', "\\", "\\$", "!", "", "é"]), max_size=5),
    st.sampled_from([None, "sub", "a b", "it's", "ü"]),
    st.integers(0, 2),
)
def test_the_shell_would_give_the_tool_the_same_text_and_folder(
    lines: list[str], folder: str | None, wrapping: int
) -> None:
    """Run in a real shell, with a stand-in for the tool that prints where it is and what it got."""
    bash = shutil.which("bash")
    assert bash, "the tests need bash"
    body = "".join(f"{line}\n" for line in lines)
    command = f"apply_patch <<'EOF'\n{body}EOF"
    if folder is not None:
        command = f"cd {shlex.quote(folder)} && {command}"
    if wrapping == 1:
        command = shlex.join(["bash", "-c", command])
    elif wrapping == 2:
        escaped = "".join(f"\\{one}" if one in '\\"$`' else one for one in command)
        command = f'bash -c "{escaped}"'
    stand_in = (
        'apply_patch() { printf "%s\\n" "$where"; cat; }; cd() { where="$1"; }; '
        "export -f apply_patch cd\n"
    )
    ran = subprocess.run(
        [bash, "-c", stand_in + command], capture_output=True, check=True, timeout=60
    )
    assert heredoc_patch(command) == (body, folder)
    assert ran.stdout.decode() == f"{folder or ''}\n{body}"


def test_a_folder_is_given_as_it_is_written(tmp_path: Path) -> None:
    command = f"cd {shlex.quote(str(tmp_path))} && {HEREDOC}"
    assert heredoc_patch(command) == (PATCH, str(tmp_path))
