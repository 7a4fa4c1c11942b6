"""A running balance per account at once, taken back and given anew when a booking comes late.

Run it with `.venv/bin/python examples/balances.py`; it writes to a temporary folder.
"""

import json
import os
import tempfile
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import Window
from pyspark.sql import functions as F

import latecomer as lc

folder = tempfile.mkdtemp(prefix="latecomer-example-")
bookings = Path(folder, "bookings")
bookings.mkdir()

# Three files, one for each micro-batch. The second brings a booking of 09:10 that should have come with the first.
arrived = [
    [("09:00", "ann", 100), ("09:05", "bob", 50), ("09:20", "ann", -30), ("09:30", "ann", -20)],
    [("09:10", "ann", 500), ("09:40", "bob", -10)],
    [("12:00", "ann", 1), ("12:05", "bob", 1)],
]
for number, rows in enumerate(arrived):
    lines = [json.dumps({"at": f"2026-01-05 {at}:00", "account": who, "amount": n}) for at, who, n in rows]
    file = Path(bookings, f"{number}.json")
    file.write_text("\n".join(lines))
    os.utime(file, (number, number))  # Spark reads the oldest first

spark = lc.session("balances")
schema = "at timestamp, account string, amount bigint"
stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(str(bookings))

print("The same question to Spark alone:")
before = Window.partitionBy("account").orderBy("at")
try:
    lagged = stream.withColumn("previous", F.lag("amount").over(before))
    lagged.writeStream.format("noop").start().processAllAvailable()
except PySparkException as error:
    print(f"  {error.getCondition()}: {str(error).splitlines()[0][:100]}...\n")

events = lc.disordered(stream, time="at", key="account")
balance = lc.running_sum("amount").alias("balance")
query = events.scan(balance, lc.lag("amount"), lc.session_id("1 hour")).optimistic("2 hours", barrier=True)
query.explain()

# What a table in a database would do with the changes: -1 takes a row out, 1 puts one in.
table: set[tuple[str, str, int]] = set()


def apply(changes, batch):  # type: ignore[no-untyped-def]
    """Apply the changes of a micro-batch, those that void first, and show what they were."""
    print(f"\nmicro-batch {batch}")
    for row in changes.collect():
        said = (row.at.strftime("%H:%M"), row.account, row.balance)
        print("  void" if row.change < 0 else "  new ", *said, f"(before: {row.lag_amount})")
        table.remove(said) if row.change < 0 else table.add(said)


running = query.start(
    f"{folder}/out",
    checkpoint=f"{folder}/checkpoint",
    sinks={"changes": apply, "final": f"{folder}/final"},
    available_now=True,
)
running.awaitTermination()

print("\nThe table after all changes:")
for at, account, amount in sorted(table):
    print(f"  {at}  {account}  {amount:5d}")
print("\nFinal rows, each once, when no booking can come before it any more:")
lc.read(spark, f"{folder}/final").select("at", "account", "balance", "session_id").orderBy("at").show()
