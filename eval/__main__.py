"""`make eval`: detection quality of the guardrails as they come out of the box.

DATA=folder uses other files of the same names; JSON=file writes the figures there as well.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from eval import injection, personal_data
from eval.tables import as_json, printed


def main() -> int:
    data = Path(os.environ.get("DATA") or Path(__file__).with_name("data"))
    try:
        figures = [*injection.figures(data), *personal_data.figures(data)]
    except FileNotFoundError as error:
        print(
            f"{error.filename} is missing. DATA must be a folder with the files named in eval/data/README.md.",
            file=sys.stderr,
        )
        return 2
    print(printed(figures))
    if target := os.environ.get("JSON"):
        Path(target).write_text(as_json(figures), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
