"""Which way to live with late readings: advice for two wishes, and what today's watermark loses. No Spark runs.

python examples/which_way.py
"""

import latecomer as lc

# A hundred meters send a reading an hour; some lose contact and send theirs when it is back.
readings = lc.preset("meters", meters=100, days=8, seed=3)
asked = {"window": "6 hours", "key": "meter", "every": "1 hour", "batches": 16}

advice = lc.advise(readings, **asked, complete=1.0, today="df.withWatermark('ts', '1 minute')")
today, best = advice.today, advice.best
print(f"{today.way.text} loses {today.doors.gone} readings; {100 * today.scores.right_share:.2f} % of windows right")
print(
    f"for every window right: {best.way.text}, {best.held} events held, {best.scores.revisions:.2f} answers given again"
)
print(advice.code)

once = lc.advise(readings, **asked, sink="append", memory=1_000)
print(f"\nwith results that are written once, and at most 1,000 events held: {once.best.way.text}")
print(f"{100 * once.best.scores.right_share:.2f} % of the windows are right, {once.best.doors.late} readings set aside")
if once.missed:
    print(f"not granted: {', '.join(once.missed)}")

# Ways of your own choice; engine="spark" runs them there.
print("\nright    first answer, hours")
ways = ["withWatermark('1 day')", "tiers('1 hour', '1 day')", "timetravel('10 days', every='1 hour')"]
for way in lc.compare(readings, **asked, ways=ways, engine="python").ways:
    print(f"{100 * way.scores.right_share:6.2f} %  {way.scores.first[1] / 3_600:6.1f}  {way.way.text}")
