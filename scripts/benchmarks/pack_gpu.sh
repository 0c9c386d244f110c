#!/usr/bin/env bash
# Pack what gpu.sh needs on a machine that has torch and no network, in one folder of at most 40 MB.
#
#     bash scripts/benchmarks/pack_gpu.sh FOLDER NSMC MULTI30K REVIEWS.txt.gz [REQUIREMENT ...]
#
# NSMC has ratings_train.txt and ratings_test.txt, MULTI30K the .de.gz and .en.gz of train, val and test_2016_flickr;
# docs/results.md says where they are from. A requirement is a package that the machine lacks: its wheel, without what it
# needs itself, for PYTHON_VERSION (3.12).
set -euo pipefail
mkdir -p "$1/nsmc" "$1/multi30k" "$1/wheels"
folder=$(cd "$1" && pwd)
for split in train test; do gzip -9nc "$2/ratings_$split.txt" >"$folder/nsmc/ratings_$split.txt.gz"; done
for split in train val test_2016_flickr; do cp "$3/$split.de.gz" "$3/$split.en.gz" "$folder/multi30k/"; done
cp "$4" "$folder/reviews.txt.gz"
for requirement in "${@:5}"; do
    python3 -m pip download -q --no-deps --only-binary=:all: --python-version "${PYTHON_VERSION:-3.12}" \
        --implementation cp --platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 \
        --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 -d "$folder/wheels" "$requirement"
done
bytes=$(find "$folder" -type f -printf '%s\n' | awk '{ sum += $1 } END { print sum }')
echo "$folder: $bytes bytes"
test "$bytes" -le 40000000
