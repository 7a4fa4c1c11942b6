"""Documents for the inverted index: made from a seed, or paragraphs of a folder of texts.

Made documents resemble paragraphs of Wikipedia: lengths are log-normal (half of them below 77 words), words follow
Zipf's law, and one word in seven repeats an earlier one of its document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq

from latecomer.errors import InputError, must

_VOCABULARY, _MEDIAN, _SPREAD, _REPEATED = 50_000, 77, 0.57, 0.15
_SHORTEST, _LONGEST = 5, 3_000
_WORD = re.compile(r"\w+")


class Document(NamedTuple):
    """How many words a document has, and the numbers of its different words; each of these is an item."""

    words: int
    items: list[int]


def make_documents(seed: int, count: int) -> list[Document]:
    """Documents with Zipf's word frequencies.

    >>> make_documents(1, 3) == make_documents(1, 3)
    True
    """
    rng = np.random.default_rng(seed)
    weights = np.cumsum(1.0 / np.arange(1, _VOCABULARY + 1))
    lengths = np.clip(np.exp(rng.normal(np.log(_MEDIAN), _SPREAD, count)), _SHORTEST, _LONGEST).astype(int)
    fresh = np.maximum(1, np.round(lengths * (1.0 - _REPEATED))).astype(int)
    drawn = (np.searchsorted(weights, rng.random(each) * weights[-1]) for each in fresh)
    return [Document(int(words), np.unique(items).tolist()) for words, items in zip(lengths, drawn, strict=True)]


def read_documents(folder: Path) -> list[Document]:
    """All texts of a folder: the column `text` of Parquet files, and text files whole."""
    if not folder.is_dir():
        raise InputError(must("--texts", "name a folder", str(folder), "or leave it out: documents are then made"))
    numbers: dict[str, int] = {}
    found = []
    for text in _texts(folder):
        words = _WORD.findall(text.lower())
        if words:
            items = [numbers.setdefault(word, len(numbers)) for word in dict.fromkeys(words)]
            found.append(Document(len(words), items))
    return found


def _texts(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*.parquet")):
        if "text" not in pq.read_schema(path).names:
            raise InputError(must("--texts", "have Parquet files with a column `text`", path.name, "rename the column"))
        yield from (text for text in pq.read_table(path, columns=["text"])["text"].to_pylist() if text)
    for path in sorted(folder.rglob("*.txt")):
        yield path.read_text(encoding="utf-8", errors="replace")


def choose_documents(documents: list[Document], seed: int, count: int) -> list[Document]:
    """Some documents in an order of chance: those that follow each other need not be of one article."""
    if len(documents) < count:
        advice = f"give another folder, or --documents {len(documents)}"
        raise InputError(must("--texts", f"have at least {count} texts with words", len(documents), advice))
    return Random(seed).sample(documents, count)
