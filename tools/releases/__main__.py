"""`python -m tools.releases`: the steps of tools/releases.sh that need Python.

`list FILE` prints the versions of a matrix; `page MATRIX SCHEMAS PAGE` writes docs/releases.md.
"""

import json
import sys
from pathlib import Path

from harness.report.drift.release_schemas import ReleaseSchemas
from harness.report.matrix import read_column
from harness.search.releases.matrix_file import read_matrix_file
from tools.releases.page import page


def main(words: list[str]) -> int:
    """Do one step and return its exit status."""
    match words:
        case ["list", file]:
            rows = read_matrix_file(Path(file)).target
            sys.stdout.write(" ".join(version for row in rows for version in row.versions) + "\n")
        case ["page", file, schemas, output]:
            matrix = Path(file)
            columns = json.loads(matrix.read_bytes())["targets"]
            judged = [column for column in columns if column["report"] is not None]
            for column in columns:
                if column not in judged:
                    sys.stderr.write(f"{column['name']}: {column['problem']}\n")
            reports = {row["version"]: read_column(matrix, row["name"]) for row in judged}
            written = {row["version"]: Path(schemas) / row["version"] for row in columns}
            text = page(reports, {name: ReleaseSchemas(path) for name, path in written.items()})
            Path(output).write_text(text, encoding="utf-8")
        case _:
            sys.stderr.write(f"{__doc__}\n")
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
