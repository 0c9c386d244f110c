"""Add a column of labels with Spark's `predict_batch_udf`, which loads the model once a worker.

    python scripts/examples/answer_spark_column.py

Reads the column `text` of the folder `reviews`, and writes the folder `answers`. Spark needs Java.
"""

import numpy as np
from pyspark.ml.functions import predict_batch_udf
from pyspark.sql import SparkSession
from pyspark.sql.types import StringType


def load():
    from hf_vanilla_transformer import Classifier

    classify = Classifier("model_cards/nsmc-small")
    return lambda texts: np.array([one["label"] if one else "" for one in classify(texts.tolist())])


spark = SparkSession.builder.master("local[2]").config("spark.executorEnv.OMP_NUM_THREADS", "1").getOrCreate()
label = predict_batch_udf(load, return_type=StringType(), batch_size=4096)
rows = spark.read.parquet("reviews").repartition(2)
rows.withColumn("predicted", label("text")).write.parquet("answers")
spark.stop()
