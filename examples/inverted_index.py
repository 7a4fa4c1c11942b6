"""An inverted index of texts that come out of order: each text is one update, and one that comes late repairs others.

By word, a text gets its place in the word's list; by text, the places of all its words become one update. Run it with
`.venv/bin/python examples/inverted_index.py`, and, for texts of your own, a folder of Parquet files (event_time in
microseconds, title, para_no, text, arrival_seq). It writes to a temporary folder.
"""

import json
import os
import re
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds

import latecomer as lc

if len(sys.argv) > 1:
    rows = ds.dataset(sys.argv[1]).to_table().sort_by("arrival_seq").to_pylist()
    texts = [(row["event_time"], f"{row['title']} {row['para_no']:03}", row["text"]) for row in rows]
    bound, in_a_batch, shown = "1000 days", 1000, ["anarchist", "autism", "altruism"]
else:  # when it was written, and what it says, in the order in which they come
    fables = ["3 The fox could not reach the grapes.", "1 A crow sat in a tree with a piece of cheese."]
    fables += ["5 The hare mocked the tortoise.", "2 A fox praised the crow.", "4 The fox called the grapes sour."]
    texts = [(10**15 + int(said[0]) * 60_000_000, f"fable {said[0]}", said[2:]) for said in fables]
    bound, in_a_batch, shown = "1 hour", 2, ["crow", "fox", "grapes"]

folder = Path(tempfile.mkdtemp(prefix="latecomer-example-"))
Path(folder, "in").mkdir()
for number in range(0, len(texts), in_a_batch):  # a file for each micro-batch
    lines = (json.dumps({"at": at, "name": name, "text": text}) for at, name, text in texts[number:][:in_a_batch])
    Path(folder, "in", f"{number:06}.json").write_text("\n".join(lines))
    os.utime(folder / "in" / f"{number:06}.json", (number, number))  # Spark reads the oldest first

stream = lc.session("inverted-index").readStream.schema("at bigint, name string, text string")
split = "array_distinct(regexp_extract_all(lower(text), '([a-z]+)', 1)) AS words"
words = stream.option("maxFilesPerTrigger", 1).json(str(folder / "in")).selectExpr("at", "name", split)
words = words.selectExpr("*", "posexplode(words) AS (n, word)")
words = words.selectExpr("at", "name", "word", "n", "n + 1 = size(words) AS last")  # the last word is flagged


def post(length, row):  # type: ignore[no-untyped-def]
    """By word: the text goes to the end of the word's list."""
    return length + 1, [(row.name, row.last, length)]


def update(entries, row):  # type: ignore[no-untyped-def]
    """By text: the places of all its words, when the last has come."""
    entries.append(f"{row.word} {row.place}")
    return ([], [(entries,)]) if row.last else (entries, [])


entries = pa.list_(pa.string())
placed = pa.schema([("name", pa.string()), ("last", pa.bool_()), ("place", pa.int64())])
events = lc.disordered(words, time="at", key="word", order=["name", "n"])
places = events.scan(lc.Fold(post, 0, state=pa.int64(), returns=placed))
updates = places.by("name").scan(lc.Fold(update, [], state=entries, returns=pa.schema([("entries", entries)])))
index = {}  # what a search engine would hold: which text has which place in the list of a word


def apply(changes, batch):  # type: ignore[no-untyped-def]
    """Change the index: first what is void, then what is new."""
    new, void = ([row for row in changes.collect() if row.change == change] for change in (1, -1))
    _ = [index.pop(entry) for row in void for entry in row.entries]
    index.update({entry: row.name for row in new for entry in row.entries})
    print(f"{batch}: {len(new)} updates; {len(void)} taken back: {', '.join(sorted(row.name for row in void))}"[:99])


result, to = updates.optimistic(bound, barrier=True), {"changes": apply, "final": str(folder / "final")}
result.start(folder / "out", checkpoint=folder / "checkpoint", sinks=to, available_now=True).awaitTermination()
lists: dict[str, list[str]] = {}  # the same from texts that come in order
for _, name, text in sorted(texts):
    for word in dict.fromkeys(re.findall("[a-z]+", text.lower())):
        lists.setdefault(word, []).append(name)
assert index == {f"{word} {place}": name for word, names in lists.items() for place, name in enumerate(names)}
print(f"{len(index)} entries of {len(lists)} words in {len(texts)} texts: the index of the texts in order")
for word in shown:
    print(f"  {word}: {', '.join(index[f'{word} {place}'] for place in range(len(lists[word])))}"[:99])
