#!/usr/bin/env bash
# multi30k-de-en-more-text: test BLEU 43.37 (validation 43.87), lower-cased, German to English.
#
#     bash scripts/experiments/multi30k_more_text.sh multi30k runs
#
# The folder `multi30k` holds, of https://github.com/multi30k/dataset, the .de.gz and .en.gz of `train`, `val` and
# `test_2016_flickr` from `data/task1/raw`, and captions.de.gz and captions.en.gz: `train.1` to `train.5` of
# `data/task2/raw` one after the other, without the English captions of task 1 and without lines that are a sentence of
# `val` or `test_2016_flickr`. Finished stages are skipped. LOG.md says in what the published run differs.
set -euo pipefail
multi30k=$(cd "${1:-multi30k}" && pwd)
runs=${2:-runs}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$runs"

stage() { # FOLDER COMMAND...
    local folder=$runs/$1
    shift
    test -e "$folder/metrics.json" || "$@" --output_dir "$folder"
}

clean() { # LANGUAGE
    test -e "$runs/clean.$1" || python "$here/clean_captions.py" --pairs "$multi30k/train.$1.gz" \
        --file "$multi30k/captions.$1.gz" --output "$runs/clean.$1"
}

translated() { # MODEL FILE OUTPUT BEAMS
    test -e "$runs/$1-int8" || vanilla-transformer export --model "$runs/$1" --format ctranslate2 --quantize int8 \
        --output_dir "$runs/$1-int8"
    test -e "$runs/$3" || vanilla-transformer translate --model "$runs/$1-int8" --num_beams "$4" --batch_size 128 \
        --file "$2" --output "$runs/$3"
}

text() { # FOLDER SOURCE TARGET OPTIONS...
    local folder=$1 source=$2 target=$3
    shift 3
    test -e "$runs/$folder" || python "$here/more_pairs.py" --multi30k "$multi30k" --source_column "$source" \
        --target_column "$target" "$@" --output_dir "$runs/$folder"
}

# From the pairs alone, German to English; its translations of the German captions; wider layers, less dropout.
stage de-en vanilla-transformer train-translation multi30k-de-en --data "$multi30k"
clean de
clean en
test -e "$runs/captions.de" || gzip -cd "$multi30k/captions.de.gz" > "$runs/captions.de"
translated de-en "$runs/captions.de" captions.de.en 4
stage wide python "$here/widen.py" --model "$runs/de-en"

# English to German, from the German captions and what was made of them.
text pairs-and-back-translated-en-de en de --files "$runs/captions.de.en" "$runs/captions.de" --kept "$runs/clean.de"
stage en-de-1 python "$here/one_core.py" --model "$runs/wide" --data "$runs/pairs-and-back-translated-en-de" \
    --updates 400 --rate 2.5e-3 --warmup 500 --schedule inverse_sqrt
stage en-de-2 python "$here/one_core.py" --model "$runs/en-de-1" --data "$runs/pairs-and-back-translated-en-de" \
    --updates 400 --rate 2.5e-3 --warmup 400 --schedule inverse_sqrt
stage en-de-3 torchrun --nproc_per_node 2 "$here/one_core.py" --model "$runs/en-de-2" \
    --data "$runs/pairs-and-back-translated-en-de" --updates 1300 --stop 400 --rate 2.2e-3 --warmup 60
translated en-de-3 "$runs/clean.en" clean.en.de 1

# German to English, from its own translations, then also from the English captions and what was made of them.
text pairs-and-translated-de-en de en --files "$runs/captions.de" "$runs/captions.de.en"
stage de-en-1 python "$here/one_core.py" --model "$runs/wide" --data "$runs/pairs-and-translated-de-en" \
    --updates 600 --rate 1.2e-3 --warmup 400 --schedule inverse_sqrt
text pairs-and-captions-de-en de en --kept "$runs/clean.de" "$runs/clean.en" \
    --files "$runs/clean.en.de" "$runs/clean.en" "$runs/captions.de" "$runs/captions.de.en"
stage de-en-2 torchrun --nproc_per_node 2 "$here/one_core.py" --model "$runs/de-en-1" \
    --data "$runs/pairs-and-captions-de-en" --updates 1300 --rate 1.5e-3 --warmup 60

# The pairs alone again.
stage multi30k-de-en-more-text vanilla-transformer train-translation "$here/recipes/pairs-alone.yaml" \
    --data "$multi30k" --model "$runs/de-en-2" --source_column de --target_column en
