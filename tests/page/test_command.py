"""`vanilla-transformer page`: what is in the folder, and what is refused."""

import re
from pathlib import Path

from exports.models import random_model, save
from shared import ROOT, files_of_at_most, read_json, tiny_config


PAGE = ROOT / "hf_vanilla_transformer" / "page"


def names_in(folder: Path) -> set[str]:
    return {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}


def test_the_folder_has_the_page_and_what_it_reads_of_the_models(succeed, tmp_path):
    classifier = random_model(tiny_config(), "classification")
    folders = [tmp_path / "classifier", tmp_path / "translator"]
    save(classifier, folders[0])
    save(random_model(tiny_config(decoder_vocab_size=31)), folders[1])
    classifier.save_pretrained(folders[0], max_shard_size="20KB")  # beside the one file of before
    (folders[0] / "checkpoint-1").mkdir()
    (folders[0] / "checkpoint-1" / "config.json").write_text("{}")
    page = tmp_path / "page"
    said = succeed("page", "--model", *folders, "--output_dir", page)
    assert said == f"python -m http.server --bind 127.0.0.1 --directory {page}\n"
    assert names_in(PAGE) <= names_in(page)
    beside = read_json(page / "page.json")
    assert beside["models"] == ["classifier", "translator"]
    assert re.fullmatch(r"Repository, https://github.com/[^/]+/hf_vanilla_transformer", beside["home"])
    own = {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"}
    assert own <= names_in(page / "models" / "translator")
    targets = {"target_tokenizer/tokenizer.json", "target_tokenizer/tokenizer_config.json"}
    assert names_in(page / "models" / "translator") - own == {"model.safetensors", *targets}
    shards = {name for name in names_in(page / "models" / "classifier") if name.startswith("model-0000")}
    assert len(shards) > 1 and "model.safetensors.index.json" in names_in(page / "models" / "classifier")
    assert "checkpoint-1/config.json" not in names_in(page / "models" / "classifier")


def test_on_a_full_disk_there_is_no_page(refused, tmp_path, tiny_models):
    with files_of_at_most(4000):
        said = refused("page", "--model", tiny_models["classification"], "--output_dir", tmp_path / "page")
    assert "File too large" in said and not [*tmp_path.iterdir()]


def test_what_neither_classifies_nor_translates_is_refused(refused, tmp_path):
    random_model(tiny_config()).model.save_pretrained(tmp_path / "base")
    said = refused("page", "--model", tmp_path / "base", "--output_dir", tmp_path / "page")
    assert "neither classifier nor translator but a VanillaTransformerModel" in said
    assert not (tmp_path / "page").exists()
