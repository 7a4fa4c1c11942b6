"""The pages that are meant to be followed: every block runs, and prints what stands below it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.docs.pages import blocks_of, printed_by


@pytest.mark.parametrize("page", ["tutorial.md", "recipes.md"])
def test_every_block_of_a_page_prints_what_stands_below_it(page: str) -> None:
    known: dict[str, Any] = {}
    for block in blocks_of(page):
        printed = printed_by(block.code, known)
        assert printed == (block.shown or ""), f"{page}, {block.heading}"
