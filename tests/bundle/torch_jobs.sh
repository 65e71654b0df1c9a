#!/usr/bin/env bash
# Records a PyTorch job on the CPU with the installed bundle, makes a plan, validates it, and carries it out on the job.
#   torch_jobs.sh FOLDER PYTHON      FOLDER: as given to install.sh
# Without PyTorch, prints "skipped: REASON" and exits with 0; with TIDEPOOL_REQUIRE_TORCH, it fails instead.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$(cd "$1" && pwd -P) python=$2
program=$folder/bundle/bin/tidepool
fail() { printf 'failed: %s\n' "$*"; exit 1; }
if ! "$python" -c 'import torch' 2>/dev/null; then
  [ -z "${TIDEPOOL_REQUIRE_TORCH-}" ] || fail "PyTorch is not installed"
  echo "skipped: PyTorch is not installed"
  exit 0
fi
rm -rf "$folder/jobs"
mkdir "$folder/jobs"
cd "$folder/jobs"
# The commands get no variables of this environment, so that they cannot depend on LD_LIBRARY_PATH or TIDEPOOL_PYTHON.
alone() { env -i PATH="$PATH" HOME="$folder/jobs" OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1 "$@"; }

alone "$program" record --torch --no-gpu --skip 2 --iterations 1 -o step.tide -- "$python" "$here/job.py" "$folder/bundle" \
  tidepool_torch >recorded.txt || fail "record --torch"
alone "$program" simulate step.tide --first --policy tide --capacity 0.8x --overhead-limit none --plan-out step.plan \
  >simulated.txt || fail "simulate"
alone "$program" validate step.plan --trace step.tide --backend host --arena 16MiB || fail "validate --backend host"
alone "$program" run --plan step.plan --trace step.tide -- "$python" "$here/job.py" "$folder/bundle" tidepool_live >live.txt ||
  fail "run"
cmp recorded.txt live.txt || fail "the losses under the plan are others than those without"
echo passed
