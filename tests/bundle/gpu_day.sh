#!/usr/bin/env bash
# Runs all calls of tests/gpu/gpu_day.sh (the measurements of a day with a GPU) from the installed bundle, on the
# fake of a driver. PyTorch runs on the CPU. If this user may change to another root (chroot), the calls run in one
# that has only the C library, shell tools, Python and PyTorch.
#   gpu_day.sh FOLDER FAKE PYTHON     FOLDER: what install.sh was given; FAKE: folder of the fake
# Without PyTorch, only call c is made; with TIDEPOOL_REQUIRE_TORCH, the script then fails.
set -euo pipefail
if [ "${1-}" = --inside ]; then
  shift
else
  here=$(cd "$(dirname "$0")" && pwd -P)
  code=0
  "$here/torch_root.sh" "$(cd "$1" && pwd -P)-root" "$3" "$(cd "$1" && pwd -P)" "$2" "$here" -- \
    /usr/bin/bash "$here/gpu_day.sh" --inside "$(cd "$1" && pwd -P)" "$2" "$3" || code=$?
  rm -rf --one-file-system "$(cd "$1" && pwd -P)-root"
  [ $code = 77 ] || exit $code
fi
folder=$(cd "$1" && pwd -P) fake=$2 python=$3
day=$folder/day bundle=$folder/bundle
fail() { printf 'failed: %s\n' "$*"; exit 1; }
rm -rf "$day"
mkdir "$day"
cd "$day"

"$bundle/tests/gpu/gpu_plans.sh" --samples bilstm -o plans || fail "gpu_plans.sh"
[ "$(ls plans | wc -l)" = 5 ] || fail "there are not five plans"

# run_call NAME [OPTIONS]: runs a call without this environment's variables, as on a fresh machine
run_call() {
  local name=$1
  shift
  rm -rf "work-$name" "results-$name" "unpacked/$name"
  env -i PATH="$PATH" HOME="$day" OMP_NUM_THREADS=1 LD_LIBRARY_PATH="$fake" \
    TIDEPOOL_FAKE=seed=3,submit=2500,gap=1500,upload=2000000,tick=1000 \
    "$bundle/tests/gpu/gpu_day.sh" "$name" "results-$name" --python "$python" --plans plans --work "work-$name" --small \
    --models unet --record "--torch --keep-raw --no-gpu" --seconds 400 "$@"
}
# call NAME EXIT STEPS [OPTIONS]: runs a call and checks its results. If the time of one of the steps was up, as on a busy
# machine, the call is run once more with more time. STEPS: names as a regular expression
call() {
  local name=$1 expected=$2 steps=$3 code=0
  shift 3
  run_call "$name" "$@" || code=$?
  if grep -qE "^($steps) .*(not done within|no time left)" "work-$name/summary-$name.txt"; then
    code=0
    run_call "$name" "$@" --seconds 1200 --patience 5 || code=$?
  fi
  [ $code = "$expected" ] || { cat "work-$name"/*.log; fail "call $name: exit code $code, expected $expected"; }
  [ "$(find "results-$name" -type f | wc -l)" -le 8 ] || fail "call $name: more than 8 files"
  [ -z "$(find "results-$name" -size +16384k)" ] || fail "call $name: a file of more than 16 MiB"
  "$bundle/tests/gpu/gpu_day.sh" unpack "results-$name" unpacked || fail "call $name: the results cannot be unpacked"
  diff -r --exclude left-out.txt "work-$name" "unpacked/$name" || fail "call $name: the packed results are others"
}
has() { grep -qE "$2" "$1" || { cat "$1"; fail "$1 has no line like $2"; }; }

call c 0 '.*'
[ "$(wc -l <unpacked/c/plans.jsonl)" = 5 ] || fail "five plans were not executed"
has unpacked/c/tables.log '^3 plans by streams: .* % from their prediction in the median'
has unpacked/c/tables.log '^2 plans --graph: '
has unpacked/c/machine.json 'this-gpu'

if ! "$python" -c 'import torch' 2>/dev/null; then
  [ -z "${TIDEPOOL_REQUIRE_TORCH-}" ] || fail "PyTorch is not installed"
  echo "passed call c; PyTorch is not installed, calls a, b and d need it"
  exit 0
fi
# The step `questions` needs a GPU, and may take all of the call's time. If little was left of it, the call has more.
steps='kernels|calibrate|capture-unet|plan.*'
call a 1 "$steps" --seconds 180
grep -q '^Which versions meet?$' unpacked/a/questions.log || call a 1 "$steps" --seconds 1200 --patience 5
[ "$(wc -l <unpacked/a/plans.jsonl)" = 3 ] || fail "three plans were not executed"
has unpacked/a/summary-a.txt '^calibrate  .*  ok$'
has unpacked/a/calibrate.log "^step of the device's timer  .* us"
has unpacked/a/summary-a.txt '^capture-unet  .*  ok$'
has unpacked/a/summary-a.txt '^questions  .* s  (failed with 1|not done)'
has unpacked/a/questions.log '^Which versions meet\?$'
call b 0 '.*'
has unpacked/b/tables.log '^unet: .* ms alone; recorded, iteration by iteration: '
has unpacked/b/summary-b.txt '^pointers-unet  .*  ok$'
[ -n "$(find unpacked/b/unet.raw -type f)" ] || fail "call b keeps no raw capture"
call d 1 'calibrate|losses-alone|live-plan|live|events-real|events-dry|offload'  # its step `events-real` needs a GPU
has unpacked/d/live.log '^live: 8 losses under the plan are those without, to the bit'
has unpacked/d/summary-d.txt '^live  .*  ok$'
has unpacked/d/summary-d.txt '^events-real .*  failed with 1: '
has unpacked/d/summary-d.txt '^events-dry .*  ok$'
has unpacked/d/summary-d.txt '^offload .*  ok$'
has unpacked/d/offload--offload-dry.txt '"allocated_peak_bytes": [1-9]'
echo passed
