"""Follows a page of docs/: its Python blocks run one after the other, and what they print is what stands below them."""

from __future__ import annotations

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

DOCS = Path(__file__).parents[2] / "docs"
_BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```(?:\n+```text\n(?P<shown>.*?)^```)?", re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    """A block of code, what stands below it as its output, and under which heading."""

    code: str
    shown: str | None
    heading: str


def blocks_of(page: str) -> list[Block]:
    """The Python blocks of a page."""
    text, found = (DOCS / page).read_text(), []
    for match in _BLOCK.finditer(text):
        headings = re.findall(r"^##? (.*)$", text[: match.start()], re.MULTILINE)
        found.append(Block(match["code"], match["shown"], headings[-1]))
    return found


def printed_by(code: str, known: dict[str, Any]) -> str:
    """Run code that goes on from what is known, and give what it prints, without spaces at the ends of lines."""
    out = StringIO()
    with redirect_stdout(out):
        exec(compile(code, "<page>", "exec"), known)
    lines = [line.rstrip() for line in out.getvalue().strip().splitlines()]
    return "\n".join(lines) + "\n" if lines else ""
