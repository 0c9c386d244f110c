"""Classify a folder of Parquet files with datatrove, in two workers.

    OMP_NUM_THREADS=1 python scripts/examples/answer_datatrove.py

Reads the column `text` of the folder `reviews`, and writes the folder `answers`. The reader leaves out empty texts.
Workers import this file again: without the last `if`, they would start workers of their own.
"""

from itertools import tee

from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.base import PipelineStep
from datatrove.pipeline.readers import ParquetReader
from datatrove.pipeline.writers import ParquetWriter

from hf_vanilla_transformer import Classifier


class Answer(PipelineStep):
    name, type = "nsmc-small", "classifier"

    def run(self, data, rank=0, world_size=1):
        documents, again = tee(data)
        classify = Classifier("model_cards/nsmc-small")
        for document, one in zip(again, classify.stream(document.text for document in documents), strict=True):
            document.metadata |= {"predicted": one and one["label"], "probability": one and one["score"]}
            yield document


if __name__ == "__main__":
    steps = [ParquetReader("reviews"), Answer(), ParquetWriter("answers", expand_metadata=True)]
    LocalPipelineExecutor(steps, tasks=2, workers=2, logging_dir="logs").run()
