#!/usr/bin/env bash
# Measure this package on a machine with a GPU and torch, without the network, in nine minutes; see gpu.py.
#
#     bash scripts/benchmarks/gpu.sh PACKED OUT [--trial true]
#
# PACKED is the folder that pack_gpu.sh made. PYTHON is the one that has torch.
set -euo pipefail
packed=$(cd "$1" && pwd)
out=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
python=${PYTHON:-python3}
site=$(mktemp -d)
trap 'rm -rf "$site"' EXIT
if compgen -G "$packed/wheels/*.whl" >/dev/null; then
    "$python" -m pip install -q --no-index --no-deps --no-compile --target "$site" "$packed"/wheels/*.whl
fi
export PYTHONPATH="$site:$root" HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=true
mkdir -p "$site/data/nsmc" "$site/data/multi30k"
for file in "$packed"/nsmc/*.gz; do gzip -cd "$file" >"$site/data/nsmc/$(basename "${file%.gz}")"; done
cp "$packed"/multi30k/*.gz "$site/data/multi30k/"
gzip -cd "$packed/reviews.txt.gz" >"$site/data/reviews.txt"
"$python" "$root/scripts/benchmarks/gpu.py" --packed "$site/data" --output_dir "$out" "${@:3}"
