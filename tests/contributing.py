"""Follows CONTRIBUTING.md: its Python blocks become the files that their first lines name."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from latecomer.contract import VERBS, forget_verb

PAGE = Path(__file__).parents[1] / "CONTRIBUTING.md"
USE = "use_watch.py"


def files_of_the_page() -> dict[str, str]:
    """The blocks by the names of their files; a block that continues a file stands behind it."""
    files: dict[str, str] = {}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), flags=re.DOTALL | re.MULTILINE):
        name = re.match(r"# ([\w/.]+)", block)
        assert name is not None, "a block must begin with the name of its file"
        files[name[1]] = files[name[1]] + "\n\n" + block if name[1] in files else block
    return files


@contextmanager
def followed(folder: Path) -> Iterator[dict[str, str]]:
    """The files of the page in a folder from which they can be imported; afterwards all is as before."""
    files = files_of_the_page()
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    sys.path.insert(0, str(folder))
    try:
        yield files
    finally:
        sys.path.remove(str(folder))
        if "watch" in VERBS:
            forget_verb(VERBS["watch"])
        for name in [name for name in sys.modules if name.partition(".")[0] in ("watch", "test_watch")]:
            del sys.modules[name]
