#!/bin/sh
# Makes the samples again. Needs Python with torch, torchvision and transformers; no GPU and no network.
# Usage: traces/samples/make.sh [NAME...]
# The environment may name other programs: PYTHON (default python3), TIDEPOOL (default build/tidepool).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
python=${PYTHON:-python3}
tidepool=${TIDEPOOL:-$root/build/tidepool}
export PYTHONPATH="$root/tracer/torch${PYTHONPATH:+:$PYTHONPATH}"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
[ $# -gt 0 ] || set -- bert_large bilstm gpt2 gpt2_xl inception_v3 resnet50 swin_t unet vgg16
for name in "$@"; do
  "$python" "$root/tracer/torch/samples/$name.py" "$scratch/$name.jsonl"
  "$tidepool" import "$scratch/$name.jsonl" -o "$here/$name.tide"
done
