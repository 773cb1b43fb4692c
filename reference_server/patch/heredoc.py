"""Recognition of a patch in a shell command: `apply_patch <<'EOF' … EOF`.

A command that does anything else too, or with words that the shell would expand, is not a patch:
the shell has to run it.
"""

import re

_TOOL = re.compile(r"(?:apply_patch|applypatch)(?=[ \t<])")
_HEREDOC = re.compile(r"[ \t]*<<[ \t]*(?:'(\w+)'|\"(\w+)\"|(\w+))[ \t]*\r?\n")
_SHELL = re.compile(r"(?:(?:/usr)?/bin/)?(?:bash|sh|zsh|dash)[ \t]+-l?c[ \t]+")
_CD = re.compile(r"cd[ \t]+")
_AND = re.compile(r"[ \t]*&&\s*")
_GAP = re.compile(r"[ \t]*")
_BEGIN = "*** Begin Patch"

# A word of a shell command that the shell passes on as it is: without `$` and backquotes, which it
# expands even between double quotes, and without unquoted characters that are special to it.
_PIECE = re.compile(
    r"""'(?P<single>[^']*)'|"(?P<double>(?:[^"\\$`]|\\.)*)"|\\(?P<escaped>[^\n])"""
    r"""|(?P<bare>[^\s'"\\$`|&;<>(){}\[\]*?!~\#]+)""",
    re.DOTALL,
)
# Escapes between double quotes; an escaped newline is removed.
_ESCAPE = re.compile(r"\\([\"\\$`\n])")


def heredoc_patch(command: str) -> tuple[str, str | None] | None:
    """Return the text of the patch and the folder to apply it in (None: the command's own).

    Recognized: `apply_patch <<'EOF'` with any marker, quoted or not; `applypatch`; the patch as one
    quoted argument; `cd folder && ` before it; all of it as the script of `bash -lc`. The text
    between the markers is not changed. Never raises; None for every other command.
    """
    command = command.strip()
    if shell := _SHELL.match(command):
        script = _word(command, shell.end())
        if script is None or script[1] != len(command):
            return None
        command = script[0].strip()
    folder = None
    if cd := _CD.match(command):
        word = _word(command, cd.end())
        # `cd -` and `cd -P x` do not name a folder `-` or `-P`.
        if word is None or not word[0] or word[0].startswith("-"):
            return None
        joint = _AND.match(command, word[1])
        if joint is None:
            return None
        folder, command = word[0], command[joint.end() :]
    tool = _TOOL.match(command)
    if tool is None:
        return None
    text = _document(command, tool.end())
    if text is None:
        text = _argument(command, tool.end())
    return None if text is None else (text, folder)


def _document(command: str, start: int) -> str | None:
    """Return the text of a heredoc at `start`; None if there is none, or text follows it."""
    opening = _HEREDOC.match(command, start)
    if opening is None:
        return None
    end = opening[1] or opening[2] or opening[3]
    lines = command[opening.end() :].split("\n")
    marks = [at for at, line in enumerate(lines) if line.removesuffix("\r") == end]
    # The shell ends the text at the first marker; lines after it would be commands.
    if not marks or marks[0] != len(lines) - 1:
        return None
    return "".join(f"{line}\n" for line in lines[:-1])


def _argument(command: str, start: int) -> str | None:
    gap = _GAP.match(command, start)
    word = _word(command, gap.end() if gap else start)
    if word is None or word[1] != len(command) or not word[0].lstrip().startswith(_BEGIN):
        return None
    return word[0]


def _word(text: str, start: int) -> tuple[str, int] | None:
    """Return the unquoted word at `start` and its end; None if the shell would expand it."""
    parts: list[str] = []
    end = start
    while piece := _PIECE.match(text, end):
        if piece["double"] is not None:
            parts.append(_ESCAPE.sub(lambda found: found[1].strip("\n"), piece["double"]))
        else:
            parts.append(piece["single"] or piece["escaped"] or piece["bare"] or "")
        end = piece.end()
    is_complete = end > start and (end == len(text) or text[end] in " \t\n&")
    return ("".join(parts), end) if is_complete else None
