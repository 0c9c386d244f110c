"""Classify a folder of Parquet files with Spark, which loads the model once a partition.

    python scripts/examples/answer_spark.py

Reads the column `text` of the folder `reviews`, and writes the folder `answers`. Make as many partitions as there are
cores. Rows have no order of their own. Spark needs Java.
"""

from pyspark.sql import SparkSession


def answer(parts):
    from hf_vanilla_transformer import Classifier

    classify = Classifier("model_cards/nsmc-small")
    for rows in parts:
        answers = classify(rows["text"].tolist())
        labels, scores = ([one and one[key] for one in answers] for key in ("label", "score"))
        yield rows.assign(predicted=labels, probability=scores)


builder = SparkSession.builder.master("local[2]").config("spark.executorEnv.OMP_NUM_THREADS", "1")
spark = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", 4096).getOrCreate()
rows = spark.read.parquet("reviews").repartition(2)
columns = ", ".join(f"{name} {kind}" for name, kind in rows.dtypes)
rows.mapInPandas(answer, f"{columns}, predicted string, probability double").write.parquet("answers")
spark.stop()
