#!/usr/bin/env bash
# multi30k-de-en: test BLEU 44.52 (validation 45.99), lower-cased.
# multi30k-en-de: test BLEU 42.51 (validation 45.22), lower-cased.
#
#     bash scripts/experiments/multi30k_more_text.sh multi30k runs
#
# The folder `multi30k` holds, of https://github.com/multi30k/dataset, the .de.gz and .en.gz of `train`, `val` and
# `test_2016_flickr` from `data/task1/raw`, and captions.de.gz and captions.en.gz: `train.1` to `train.5` of
# `data/task2/raw` one after the other, without the English captions of task 1 and without lines that are a sentence of
# `val` or `test_2016_flickr`. Finished stages are skipped. Each stage of one direction can run beside that of the other.
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

further() { # FOLDER MODEL TEXT OPTIONS...
    local folder=$1 model=$2 text=$3
    shift 3
    stage "$folder" python "$here/one_core.py" --model "$runs/$model" --data "$runs/$text" "$@"
}

clean() { # LANGUAGE
    test -e "$runs/clean.$1" || python "$here/clean_captions.py" --pairs "$multi30k/train.$1.gz" \
        --file "$multi30k/captions.$1.gz" --output "$runs/clean.$1"
}

translated() { # MODEL FILE RESULT OPTIONS...
    test -e "$runs/$1-int8" || vanilla-transformer export --model "$runs/$1" --format ctranslate2 --quantize int8 \
        --output_dir "$runs/$1-int8"
    test -e "$runs/$3" || {
        vanilla-transformer translate --model "$runs/$1-int8" --num_beams 4 --batch_size 128 --file "$2" "${@:4}" \
            > "$runs/$3.unfinished"
        mv "$runs/$3.unfinished" "$runs/$3"
    }
}

sampled() { # FILE SEED...
    local file=$1 seed
    shift
    for seed; do
        test -e "$runs/$file.en.sampled.$seed" || python "$here/sample_translations.py" \
            --model "$runs/multi30k-de-en-int8" --seed "$seed" --file "$runs/$file" \
            --output "$runs/$file.en.sampled.$seed"
    done
}

captions=("$runs/clean.de" "$runs/clean.en")
text() { # FOLDER SOURCE TARGET TIMES FILES...
    local folder=$1 source=$2 target=$3 times=$4
    shift 4
    test -e "$runs/$folder" || python "$here/more_pairs.py" --multi30k "$multi30k" --source_column "$source" \
        --target_column "$target" --times "$times" --captions "${captions[@]}" --files "${@/#/$runs/}" \
        --output_dir "$runs/$folder"
}

# From the pairs alone, German to English; its translations of the German captions; wider layers, less dropout.
stage de-en vanilla-transformer train-translation multi30k-de-en --data "$multi30k"
clean de
clean en
test -e "$runs/captions.de" || gzip -cd "$multi30k/captions.de.gz" > "$runs/captions.de"
translated de-en "$runs/captions.de" captions.de.en
stage wide python "$here/widen.py" --model "$runs/de-en"

# Both directions from the pairs and these.
text pairs-and-back-translated-en-de en de 3 captions.de.en captions.de
text pairs-and-translated-de-en de en 3 captions.de captions.de.en
further en-de-1 wide pairs-and-back-translated-en-de --updates 2000 --rate 2.5e-3 --warmup 400 --schedule inverse_sqrt
further de-en-1 wide pairs-and-translated-de-en --updates 2000 --rate 1.5e-3 --warmup 400 --schedule inverse_sqrt

# From the captions of both languages, as these two translate them; and once more, longer.
translated en-de-1 "$runs/clean.en" clean.en.de.1
translated de-en-1 "$runs/clean.de" clean.de.en.1
text pairs-and-captions-en-de en de 3 clean.de.en.1 clean.de clean.en clean.en.de.1
text pairs-and-captions-de-en de en 3 clean.en.de.1 clean.en clean.de clean.de.en.1
further en-de-2 en-de-1 pairs-and-captions-en-de --updates 2500 --rate 2e-3 --warmup 600 --schedule inverse_sqrt
further de-en-2 de-en-1 pairs-and-captions-de-en --updates 2500 --rate 1.5e-3 --warmup 600 --schedule inverse_sqrt
translated en-de-2 "$runs/clean.en" clean.en.de.2
translated de-en-2 "$runs/clean.de" clean.de.en.2
text pairs-and-captions-en-de-2 en de 3 clean.de.en.2 clean.de clean.en clean.en.de.2
text pairs-and-captions-de-en-2 de en 3 clean.en.de.2 clean.en clean.de clean.de.en.2
further en-de-3 en-de-2 pairs-and-captions-en-de-2 --updates 4000 --rate 1.5e-3 --warmup 200
further de-en-3 de-en-2 pairs-and-captions-de-en-2 --updates 4000 --rate 1.5e-3 --warmup 200

# Longest, from each caption with two translations on the source side.
translated en-de-3 "$runs/clean.en" clean.en.de.3
translated de-en-3 "$runs/clean.de" clean.de.en.3
text pairs-and-captions-en-de-3 en de 5 clean.de.en.2 clean.de clean.de.en.3 clean.de clean.en clean.en.de.3
text pairs-and-captions-de-en-3 de en 3 clean.en.de.2 clean.en clean.en.de.3 clean.en clean.de clean.de.en.3
further en-de-4 en-de-3 pairs-and-captions-en-de-3 --updates 10000 --stop 2600 --rate 2e-3 --warmup 300
further de-en-4 de-en-3 pairs-and-captions-de-en-3 --updates 9000 --stop 2600 --rate 1.5e-3 --warmup 200
further en-de-5 en-de-4 pairs-and-captions-en-de-3 --updates 7200 --rate 1.6e-3 --warmup 100 --seed 43
further de-en-5 de-en-4 pairs-and-captions-de-en-3 --updates 6400 --rate 1.2e-3 --warmup 100 --seed 43

# English to German once more, without its own translations, and with more of the pairs.
text pairs-and-captions-en-de-4 en de 8 clean.de.en.2 clean.de clean.de.en.3 clean.de
further en-de-6 en-de-5 pairs-and-captions-en-de-4 --updates 3600 --rate 1.2e-3 --warmup 100 --seed 44

# The pairs alone: German to English is published, English to German translates the English captions once more.
pairs() { # FOLDER MODEL SOURCE TARGET LENGTH_PENALTY
    stage "$1" vanilla-transformer train-translation "$here/recipes/pairs-alone.yaml" --data "$multi30k" \
        --model "$runs/$2" --source_column "$3" --target_column "$4" --length_penalty "$5"
}
pairs multi30k-de-en de-en-5 de en 0.6
pairs en-de-6-pairs en-de-6 en de 1.5

# English to German with more dropout; then from two sampled translations of each German caption, then from twelve, on
# two cores.
translated multi30k-de-en "$runs/clean.de" clean.de.en.4
translated en-de-6-pairs "$runs/clean.en" clean.en.de.4
text pairs-and-captions-en-de-5 en de 6 clean.de.en.3 clean.de clean.de.en.4 clean.de clean.en clean.en.de.4
further en-de-7 en-de-6 pairs-and-captions-en-de-5 --updates 12000 --stop 3800 --rate 1.5e-3 --warmup 200 --seed 45 \
    --dropout 0.25
sampled clean.de {1..12}
text pairs-and-captions-en-de-sampled en de 6 clean.de.en.sampled.1 clean.de clean.de.en.sampled.2 clean.de \
    clean.en clean.en.de.4
further en-de-8 en-de-7 pairs-and-captions-en-de-sampled --updates 8200 --rate 1.04e-3 --warmup 100 --seed 47 \
    --dropout 0.25
pairs en-de-8-pairs en-de-8 en de 1.5
translated en-de-8-pairs "$runs/clean.en" clean.en.de.5
text pairs-and-captions-en-de-6 en de 30 $(printf 'clean.de.en.sampled.%s clean.de ' {1..12}) \
    clean.en clean.en.de.4 clean.en clean.en.de.5
stage en-de-9 torchrun --nproc_per_node 2 "$here/one_core.py" --model "$runs/en-de-8" \
    --data "$runs/pairs-and-captions-en-de-6" --updates 8400 --rate 1.5e-3 --warmup 200 --seed 48 --dropout 0.25
pairs en-de-9-pairs en-de-9 en de 1.5

# With two more layers in the encoder, and with sampled translations of the German side of the pairs, too.
translated en-de-9-pairs "$runs/clean.en" clean.en.de.6
test -e "$runs/train.de" || gzip -cd "$multi30k/train.de.gz" > "$runs/train.de"
sampled train.de {1..15}
sampled clean.de {13..20}
captions+=("$runs/train.de")
text pairs-and-captions-en-de-7 en de 15 $(printf 'clean.de.en.sampled.%s clean.de ' {7..20}) \
    $(printf 'train.de.en.sampled.%s train.de ' {1..15}) clean.en clean.en.de.5 clean.en clean.en.de.6
stage en-de-9-deep python "$here/widen.py" --model "$runs/en-de-9" --encoder_layers 6 --dropout 0.25
stage en-de-10 torchrun --nproc_per_node 2 "$here/one_core.py" --model "$runs/en-de-9-deep" \
    --data "$runs/pairs-and-captions-en-de-7" --updates 9800 --stop 4000 --rate 1.5e-3 --warmup 200 --seed 49 \
    --dropout 0.25
stage en-de-11 torchrun --nproc_per_node 2 "$here/one_core.py" --model "$runs/en-de-10" \
    --data "$runs/pairs-and-captions-en-de-7" --updates 2800 --rate 0.9e-3 --warmup 100 --seed 50 --dropout 0.25

# The pairs alone at the end, with ten translations of each by the model itself: which are like the reference?
translated en-de-11 "$multi30k/train.en.gz" train.en.candidates --num_beams 10 --num_return_sequences 10
stage multi30k-en-de python "$here/train_translation.py" "$here/recipes/minimum-risk.yaml" --data "$multi30k" \
    --model "$runs/en-de-11" --candidates "$runs/train.en.candidates"
