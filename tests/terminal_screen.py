"""The screen of a terminal after some output, with the controls that rich and pytest print."""

import re

_TOKEN = re.compile(r"\x1b\[(?P<digits>\d*)[\d;]*(?P<control>[A-Za-z])|(?P<text>[\s\S])")


def screen(output: str) -> list[str]:
    """Return the lines on an endless screen, without blanks at their ends."""
    rows, row, column = [""], 0, 0
    for token in _TOKEN.finditer(output):
        match token["control"], token["text"]:
            case "A", _:
                row = max(0, row - int(token["digits"] or 1))
            case "K", _:
                rows[row] = rows[row][: 0 if token["digits"] == "2" else column]
            case None, "\n":
                row += 1
                rows += [""] * (row + 1 - len(rows))
            case None, "\r":
                column = 0
            case None, character:
                rows[row] = f"{rows[row]:<{column}}"[:column] + character + rows[row][column + 1 :]
                column += 1
            case _:
                pass
    return [line.rstrip() for line in rows]
