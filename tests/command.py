"""The command `latecomer` in this process: the same words and code as in one of its own, and no waiting for imports."""

from __future__ import annotations

import io
import os
import sys
import traceback
import warnings
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple
from unittest import mock

from latecomer.cli.main import main


class Answer(NamedTuple):
    """What a person sees."""

    returncode: int
    stdout: str
    stderr: str


def run(*arguments: str) -> Answer:
    """Type a command."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with (
        mock.patch.object(sys, "argv", ["latecomer", *arguments]),
        mock.patch.dict(os.environ),
        warnings.catch_warnings(),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
        except Exception:
            traceback.print_exc()
            code = 1
    return Answer(code, out.getvalue(), err.getvalue())
