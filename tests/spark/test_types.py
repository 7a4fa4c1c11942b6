"""Every type that crosses into Python passes unchanged, nulls included."""

from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual

import latecomer as lc

COLUMNS = """
    id,
    IF(id % 3 = 0, NULL, concat('text ', id)) AS text,
    IF(id % 3 = 1, NULL, CAST(id AS DECIMAL(38, 10)) / 7) AS money,
    IF(id % 3 = 2, NULL, unhex(hex(id))) AS bytes,
    IF(id % 2 = 0, NULL, named_struct('a', id, 'b', array(named_struct('c', concat('x', id))))) AS nested,
    IF(id % 2 = 0, NULL, map(concat('k', id), array(id, NULL))) AS pairs,
    IF(id % 2 = 0, NULL, array(1.5D, NULL, CAST('NaN' AS DOUBLE))) AS list,
    CAST(NULL AS VOID) AS nothing,
    IF(id % 2 = 0, NULL, TIMESTAMP_NTZ'2020-02-29 12:34:56.789012') AS wall,
    IF(id % 2 = 0, NULL, TIMESTAMP'1960-02-29 12:34:56.789012') AS instant,
    IF(id % 2 = 0, NULL, DATE'1582-10-15') AS day,
    IF(id % 2 = 0, NULL, INTERVAL '1 02:03:04.5' DAY TO SECOND) AS wait,
    IF(id % 2 = 0, NULL, id % 2 = 1) AS flag,
    CAST(id AS TINYINT) AS tiny, CAST(id AS SMALLINT) AS small, CAST(id AS FLOAT) AS single,
    parse_json(concat('{"a": [', id, ', null]}')) AS anything
"""


def test_all_types_pass_unchanged(spark: SparkSession) -> None:
    df = spark.range(0, 60, 1, 3).selectExpr("TIMESTAMP_SECONDS(1000 - id) AS ts", "*").selectExpr("ts", "id")
    df.createOrReplaceTempView("numbers")
    rows = spark.sql(f"SELECT ts, {COLUMNS} FROM numbers")
    wanted = rows.selectExpr("* EXCEPT (anything)", "to_json(anything) AS anything")
    for time in ("ts", "wall"):
        kept = rows.where("wall IS NOT NULL") if time == "wall" else rows
        events = lc.disordered(kept, time=time, key="text", earliest="1900-01-01", shards=2)
        for result in (events.pass_through(), events.reorder("10 s")):
            given = result.results
            assert [f.dataType for f in given.schema] == [f.dataType for f in rows.schema]
            shown = given.selectExpr("* EXCEPT (anything)", "to_json(anything) AS anything")
            expected = wanted.where("wall IS NOT NULL") if time == "wall" else wanted
            assertDataFrameEqual(shown, expected, ignoreNullable=True)
    late = lc.disordered(rows.withColumn("arrival", rows.ts), time="ts", latest="1970-01-02", shards=1)
    assert late.pass_through().quarantine.count() == 0
