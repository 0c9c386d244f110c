#!/usr/bin/env bash
# What nsmc-small can become: validation accuracy 0.8917, where it has 0.8823; not published yet (LOG.md, 2026-11-28).
#
#     bash scripts/experiments/nsmc_small_distilled.sh nsmc reviews.txt.gz runs
#
# The second argument is the corpus of nsmc_small.sh, without labels. Times are those on two cores of an AMD EPYC with
# AVX-512 bf16, which other work shared. Finished stages are skipped.
set -euo pipefail
nsmc=$1 reviews=$2 runs=${3:-runs}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$runs"

stage() { # FOLDER COMMAND...
    local folder=$runs/$1
    shift
    test -e "$folder/run.json" || test -e "$folder/metrics.json" || "$@" --output_dir "$folder"
}

# nsmc-small and a linear model together, 0.8955 on validation, label all reviews: 6 minutes.
stage small-labels python "$here/two_teachers.py" --data "$nsmc" --model model_cards/nsmc-small --texts "$reviews"

# A student that begins as nsmc-small reads them 2.9 times, spaced anew: 84 minutes.
stage small-distilled torchrun --nproc_per_node 2 "$here/distil.py" --model model_cards/nsmc-small \
    --soft_labels "$runs/small-labels" --updates 5300

# The labelled reviews alone, spaced anew, 9 minutes on one core; the mean of these weights and those before; and a run
# of no learning, which calibrates and measures the mean.
stage small-last vanilla-transformer train-classifier "$here/recipes/finetune.yaml" --data "$nsmc" \
    --model "$runs/small-distilled" --augment spacing typing_slip --weights_dtype float16
stage small-mean python "$here/mean.py" --models "$runs/small-distilled" "$runs/small-last"
stage nsmc-small vanilla-transformer train-classifier "$here/recipes/finetune.yaml" --data "$nsmc" \
    --model "$runs/small-mean" --max_steps 1 --learning_rate 0 --augment spacing typing_slip --robustness all \
    --weights_dtype float16
