"""Classify a folder of Parquet files with Ray Data, by two actors.

    python scripts/examples/answer_ray.py

Reads the column `text` of the folder `reviews`, and writes the folder `answers`. Actors must leave a processor to read
with, or Ray waits for ever. A small file is one block, which one actor answers alone: hence `repartition`.
"""

import ray

from hf_vanilla_transformer import Classifier


class Answers:
    def __init__(self, model):
        self.classify = Classifier(model)

    def __call__(self, batch):
        answers = self.classify(batch["text"].tolist())
        batch["predicted"] = [one and one["label"] for one in answers]
        batch["probability"] = [one and one["score"] for one in answers]
        return batch


ray.init(num_cpus=3)  # two actors, and one to read
rows = ray.data.read_parquet("reviews").repartition(8)
rows = rows.map_batches(Answers, fn_constructor_args=["model_cards/nsmc-small"], concurrency=2, batch_size=4096)
rows.write_parquet("answers")
