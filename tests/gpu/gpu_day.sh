#!/usr/bin/env bash
# All measurements that need a machine with a GPU, in four calls of less than ten minutes. Each call is useful by itself
# and needs no result of another call. The most valuable steps come first; the call ends before its time is up.
#
#   tests/gpu/gpu_day.sh a|b|c|d RESULTS [options]
#   tests/gpu/gpu_day.sh unpack RESULTS FOLDER      unpacks RESULTS to FOLDER/a, FOLDER/b, ...
#     a   versions, calibration, a capture of the first model, three plans, the tracer's open questions
#     b   captures of all models, and the overhead of recording
#     c   forty plans, predicted against measured; every other one as a CUDA graph
#     d   the first model under a plan, its losses bit for bit; a dry run against a real run; activation offloading
#   RESULTS           folder for results-CALL-NNN.tar.*, in pieces, and summary-CALL.txt; updated after every step
#     --program FILE    tidepool (default build/tidepool, or bin/tidepool of the bundle that this script is in)
#     --python FILE     a python with torch, torchvision and transformers (default python3)
#     --plans FOLDER    the plans of gpu_plans.sh (default: plans beside validator/)
#     --work FOLDER     work folder (default /tmp/tidepool-gpu-day); files of an earlier call are used
#     --seconds N       time limit of the call (default 520)
#     --patience N      a step may take N times its usual limit, within that of the call (default 1)
#     --models A,B      scripts of tests/gpu (default gpt2,resnet50,bert_large,llama)
#     --record OPTIONS  of tidepool record (default "--torch --kernels --keep-raw")
#     --small           models that a CPU trains in seconds, and small copies
#     --most MiB        most MiB of packed results (default 30); the largest files are left out, and named
#     --dry-run         print the steps and end
#
# After a step that fails or runs out of time, the next step runs. The output of each step is in NAME.log, its outcome
# in summary-CALL.txt. Exit code 0: every step succeeded or had nothing to do; 1: some did not, or a signal ended the
# call; 2: bad usage.
# shellcheck disable=SC2086,SC2317  # $small is one word or none, $record is several words; steps are called by name
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
program='' python=python3 plans=$root/plans work=/tmp/tidepool-gpu-day seconds=520 dry=no small='' most=30 patience=1
models=gpt2,resnet50,bert_large,llama record='--torch --kernels --keep-raw'
piece=15728640  # bytes of a piece of the results: below 16 MiB

usage() {
  printf 'gpu_day.sh: %s; expected the arguments that the head of the script lists\n' "$*" >&2
  exit 2
}

# Unpacks the newest complete set of each call. A killed call may have left a part of the next set.
unpack() {
  local results=$1 folder=$2 call first name count pieces found=1
  for call in a b c d; do
    while read -r first; do
      name=${first%.1of*} count=${first##*of} pieces=()
      for number in $(seq "$count"); do pieces+=("$name.${number}of$count"); done
      ls "${pieces[@]}" >/dev/null 2>&1 || continue
      mkdir -p "$folder/$call"
      case $name in *.zst) cat "${pieces[@]}" | zstd -dc ;; *) cat "${pieces[@]}" | gzip -dc ;; esac | tar -x -C "$folder/$call" || return
      found=0
      break
    done < <(find "$results" -maxdepth 1 -name "results-$call-*.1of*" | sort -r)
  done
  [ $found = 0 ] || printf 'gpu_day.sh: %s: no complete set of results\n' "$results" >&2
  return $found
}

inner=()
if [ "${1-}" = --step ]; then  # the script calls itself, so that timeout can end a function
  inner=("${@:2}")
  program=$GPU_DAY_PROGRAM python=$GPU_DAY_PYTHON plans=$GPU_DAY_PLANS work=$GPU_DAY_WORK models=$GPU_DAY_MODELS
  record=$GPU_DAY_RECORD small=$GPU_DAY_SMALL
elif [ "${1-}" = unpack ]; then
  [ $# = 3 ] || usage "unpack takes a folder of results and a folder to unpack them to"
  unpack "$2" "$3"
  exit
else
  case ${1-} in a | b | c | d) call=$1 ;; *) usage "no call '${1-}'" ;; esac
  case ${2-} in '' | -*) usage "no folder for results" ;; *) results=$2 ;; esac
  shift 2
  while [ $# -gt 0 ]; do
    case $1 in
      --dry-run) dry=yes; shift; continue ;;
      --small) small=--small; shift; continue ;;
      --program | --python | --plans | --work | --seconds | --patience | --models | --record | --most) [ $# -ge 2 ] || usage "$1 needs a value" ;;
      *) usage "unknown option '$1'" ;;
    esac
    case $1 in
      --program) program=$2 ;;
      --python) python=$2 ;;
      --plans) plans=$2 ;;
      --work) work=$2 ;;
      --seconds) seconds=$2 ;;
      --patience) patience=$2 ;;
      --models) models=$2 ;;
      --record) record=$2 ;;
      --most) most=$2 ;;
    esac
    shift 2
  done
  case $seconds in '' | *[!0-9]* | 0) usage "--seconds '$seconds' is no number of seconds" ;; esac
  case $patience in '' | *[!0-9]* | 0) usage "--patience '$patience' is no number" ;; esac
  case $most in '' | *[!0-9]* | 0) usage "--most '$most' is no number of MiB" ;; esac
fi
if [ -z "$program" ]; then
  program=$root/build/tidepool
  [ -x "$root/bin/tidepool" ] && program=$root/bin/tidepool
fi
first=${models%%,*}
failed=0

nothing() {
  printf '%s\n' "$*"
  exit 77
}

# Steps ---------------------------------------------------------------------------------------------------------------

do_kernels() {
  local source=$root/share/tidepool/kernels made=$root/lib/tidepool/kernels.fatbin
  [ -d "$source" ] || nothing "the program has its kernels"
  [ ! -s "$made" ] || nothing "made before"
  nvcc -std=c++20 -fatbin --expt-relaxed-constexpr -I "$source" -gencode arch=compute_80,code=sm_80 \
    -gencode arch=compute_90,code=sm_90 -gencode arch=compute_90,code=compute_90 -o "$made" "$source/validator/cuda/kernels.cu"
}

do_system() {
  "$program" --version
  uname -a
  ldd --version | head -n 1
  nvcc --version | tail -n 2
  "$python" -c 'import sys, torch; print(sys.version); print("torch", torch.__version__, torch.version.cuda)'
  "$python" -c 'import torchvision, transformers; print("torchvision", torchvision.__version__, "transformers", transformers.__version__)'
  "$python" -c 'import torch; print(torch.cuda.get_device_name(), torch.cuda.mem_get_info())'
  nvidia-smi || nothing "no nvidia-smi here"
  nvidia-smi topo -m
  nvidia-smi --format=csv \
    --query-gpu=pcie.link.gen.current,pcie.link.gen.max,pcie.link.width.current,clocks.sm,clocks.mem,clocks.max.sm || true
}

do_calibrate() {
  [ ! -s "$work/machine.json" ] || nothing "calibrated by an earlier call"
  local more=()
  [ -z "$small" ] || more=(--largest 4MiB --samples 3)
  "$program" calibrate "${more[@]}" --name this-gpu -o "$work/machine.new" && mv "$work/machine.new" "$work/machine.json"
}

# Prints the machine for live jobs: the calibrated one without times for pinning host memory, because a job pins memory
# only in its first steps.
live_machine() {
  [ -s "$work/machine.json" ] || { echo h100-pcie5; return; }
  "$python" -c 'import json, sys
machine = json.load(open(sys.argv[1]))
machine.get("host", {}).pop("pin", None)
json.dump(machine, open(sys.argv[2], "w"), indent=2)' "$work/machine.json" "$work/machine-live.json"
  echo "$work/machine-live.json"
}

job() { printf '%s\n' "$root/tests/gpu/$1.py"; }

do_alone() { "$python" "$(job "$1")" $small; }

do_capture() {
  local model=$1
  [ ! -s "$work/$model.tide" ] || nothing "captured by an earlier call"
  rm -rf "$work/$model.raw"
  "$program" record $record --skip 3 --iterations 3 -o "$work/$model.tide" -- "$python" "$(job "$model")" $small || return
  "$program" info "$work/$model.tide"
}

# Executes one plan; the result becomes a line of plans.jsonl.
do_plan() {
  local plan=$1 name sample result code more=()
  shift
  name=$(basename "$plan" .plan.gz)
  sample=${name#*-}
  sample=${sample%%-*}
  [ ! -s "$work/machine.json" ] || more=(--machine "$work/machine.json")
  [ -z "$small" ] || more+=(--arena 16MiB)
  result=$("$program" validate "$plan" --trace "$root/traces/samples/$sample.tide" --backend cuda --repeat 5 --json "${more[@]}" "$@")
  code=$?
  if [ -n "$result" ]; then
    printf '{"run":"%s","options":"%s","result":%s}\n' "$name" "$*" "$result" >>"$work/plans.jsonl"
    printf '%s\n' "$result"
  fi
  return $code
}

do_questions() { "$root/tests/gpu/questions.sh" "$program" "$python" "$work"; }

# Compares the pointers of a model's launches with the tensors of its operators. It runs here, since raw files
# may be too large to keep.
do_pointers() {
  local run=$work/$1.raw
  compgen -G "$run/*.torch.jsonl" >/dev/null || nothing "there is no capture with operators"
  "$python" "$root/tests/gpu/pointers.py" "$run"
}

do_tables() { "$python" "$root/tests/gpu/tables.py" "$work"; }

# Trains the first model again, deterministically. Its losses are the expected ones.
do_losses() { "$python" "$(job "$first")" $small --deterministic >"$work/losses-alone.txt" && cat "$work/losses-alone.txt"; }

# Records the first model's operators, each with the time of its kernels, and makes a plan for them.
do_live_plan() {
  rm -rf "$work/live-kernels.raw" "$work/live.raw"
  "$program" record $record --skip 3 --iterations 1 -o "$work/live-kernels.tide" -- "$python" "$(job "$first")" $small \
    --deterministic || return
  mv "$work/live-kernels.raw" "$work/live.raw"
  "$program" import "$work/live.raw" -o "$work/live.tide" || return
  plan_for live tide 0.6x
}

# plan_for NAME POLICY CAPACITY: a plan for the live job, NAME.plan
plan_for() {
  local more=(--machine "$(live_machine)")
  "$program" simulate "$work/live.tide" --first --policy "$2" --capacity "$3" --overhead-limit none "${more[@]}" \
    --plan-out "$work/$1.plan"
}

# memory_for NAME: the bytes that PyTorch may use under the plan NAME.plan: its capacity and, for PyTorch's own rounding,
# 1/8 and 256 MiB more.
memory_for() {
  local capacity
  capacity=$(head -c 4000 "$work/$1.plan" | grep -o '"capacity_bytes":[0-9]*' | head -n 1 | cut -d : -f 2)
  echo $((capacity + capacity / 8 + 268435456))
}

# under_plan NAME: runs the job under NAME.plan.
under_plan() {
  "$program" run --json --plan "$work/$1.plan" --trace "$work/live.tide" -- "$python" "$(job "$first")" $small --deterministic \
    --memory-limit "$(memory_for "$1")" >"$work/$1.json" 2>"$work/losses-$1.txt"
  local code=$?
  cat "$work/$1.json" "$work/losses-$1.txt"
  return $code
}

do_live() {
  local code
  [ -s "$work/live.plan" ] || nothing "there is no plan"
  under_plan live
  code=$?
  "$python" "$root/tests/gpu/tables.py" "$work" losses || return
  return $code
}

# The job under plans of other policies: recomputation alone, copies alone, and both.
do_live_others() {
  local policy code=0
  [ -s "$work/live.tide" ] || nothing "there is no trace"
  for policy in tide-remat:0.6x autoswap:0.8x capuchin:0.7x; do
    plan_for "live-${policy%:*}" "${policy%:*}" "${policy#*:}" && under_plan "live-${policy%:*}" || code=1
  done
  "$python" "$root/tests/gpu/tables.py" "$work" losses || return
  return $code
}

# Without the plan, the same memory must be too small.
do_live_needs_plan() {
  local limit
  [ -s "$work/live.plan" ] || nothing "there is no plan"
  limit=$(memory_for live)
  "$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' || nothing "no GPU, so no limit of its memory"
  if "$python" "$(job "$first")" $small --deterministic --memory-limit "$limit" >"$work/without-plan.txt" 2>&1; then
    echo "the job needs no plan to run in $limit bytes"
    return 1
  fi
  cat "$work/without-plan.txt"
  grep -qi "out of memory" "$work/without-plan.txt" || return
  echo "out of memory without the plan, as expected"
}

do_real_events() { "$python" "$(job "$first")" $small --device cuda --iterations 3 --events "$work/events-real.json"; }

# Prints the device of `record --dry` that resembles this machine's device most.
dry_device() {
  case $("$python" -c 'import torch; print(torch.cuda.get_device_name())' 2>/dev/null) in
    *H200*) echo h200 ;;
    *A100*40*) echo a100-40gb ;;
    *A100*) echo a100-80gb ;;
    *4090*) echo rtx-4090 ;;
    *3090*) echo rtx-3090 ;;
    *4080*) echo rtx-4080 ;;
    *3060*) echo rtx-3060 ;;
    *4060*) echo rtx-4060 ;;
    *5090*) echo rtx-5090 ;;
    *"RTX PRO 6000"*) echo rtx-pro-6000 ;;
    *"RTX PRO 5000"*) echo rtx-pro-5000 ;;
    *B200*) echo b200 ;;
    *H100*) echo h100-80gb ;;
    *L40*) echo l40s ;;
    *L4*) echo l4 ;;
    *T4*) echo t4 ;;
    *) echo "no preset for this device; h100-80gb stands in" >&2; echo h100-80gb ;;
  esac
}

do_dry_events() {
  rm -rf "$work/dry.raw"
  "$program" record --dry --device "$(dry_device)" -o "$work/dry.tide" -- "$python" "$(job "$first")" $small --device cuda --iterations 3 \
    --events "$work/events-dry.json" || return
  "$python" "$root/tests/gpu/tables.py" "$work" events
}

# predict NAME COMMAND...: predicts a job with a dry run: its peaks in NAME-dry.txt, and the time of its last iteration in
# NAME-predicted.json.
predict() {
  local made=$work/$1
  shift
  "$program" record --dry --device "$(dry_device)" -o "$made.tide" -- "$@" --iterations 3 >"$made-dry.txt" || return
  "$program" import "$made.tide" --iteration 2 -o "$made-last.tide" || return
  "$program" simulate "$made-last.tide" --machine "$(live_machine)" --json >"$made-predicted.json"
}

# Activation offloading by PyTorch (save_on_cpu), predicted first, then run.
do_offload() {
  local way
  for way in '' --offload; do
    predict "offload$way" "$python" "$(job "$first")" $small --device cuda $way || return
    "$python" "$(job "$first")" $small $way >"$work/offload$way.txt" || return
  done
  "$python" "$root/tests/gpu/tables.py" "$work" offload
}

# The same by PyTorch's compiler.
do_published() {
  local way
  for way in '' --offload; do
    predict "published$way" "$python" "$(job compiled_offload)" $small $way || return
    "$python" "$(job compiled_offload)" $small $way >"$work/published$way.txt" || return
  done
  "$python" "$root/tests/gpu/tables.py" "$work" published
}

# How steps are run ---------------------------------------------------------------------------------------------------

if [ ${#inner[@]} -gt 0 ]; then
  "${inner[@]}"
  exit
fi

# Packs the work folder into new pieces and then removes the old pieces. So one complete set of pieces exists at every
# moment, and the names of its pieces tell that it is complete. The largest files are left out until the rest is small
# enough.
packs=0
pack() {
  local form=gz packer=(gzip -c) name old largest next=0 piece_file pieces
  if command -v zstd >/dev/null; then form=zst packer=(zstd -q -T0 -c); fi
  packs=$((packs + 1))
  name=$(printf 'results-%s-%03d.tar.%s' "$call" $packs "$form")
  mapfile -t largest < <(cd "$work" && find . -type f ! -name left-out.txt -printf '%s\t%p\n' | sort -rn | cut -f 2)
  : >"$work/left-out.txt"
  until
    tar -c -C "$work" --exclude-from="$work/left-out.txt" . | "${packer[@]}" >"$packed/all"
    [ "$(stat -c %s "$packed/all")" -le $((most * 1048576)) ] || [ $next -ge ${#largest[@]} ]
  do
    printf '%s\n' "${largest[next]}" >>"$work/left-out.txt"
    next=$((next + 1))
  done
  (cd "$packed" && split -b $piece --numeric-suffixes=1 -a 2 all piece. && rm all)
  old=("$results/results-$call"-*)
  pieces=("$packed"/piece.*)
  for piece_file in "${pieces[@]}"; do
    mv "$piece_file" "$results/$name.$((10#${piece_file##*.}))of${#pieces[@]}" || return
  done
  cp "$work/summary-$call.txt" "$results/"
  rm -f "${old[@]}"
}

no_time() {
  printf '%-34s %8s  %s\n' "$1" - "no time left" | tee -a "$work/summary-$call.txt"
  cp "$work/summary-$call.txt" "$results/"
  failed=1
}

# step NAME MOST COMMAND...: takes at most MOST seconds, times the patience, and at most the time that is left. Exit code 77:
# nothing to do.
step() {
  local name=$1 limit=$(($2 * patience)) start=$SECONDS code result left
  shift 2
  if [ "$dry" = yes ]; then
    printf '%-34s %s\n' "$name" "$*"
    return 0
  fi
  left=$((seconds - SECONDS - reserve))
  [ $limit -le $left ] || limit=$left
  if [ $limit -le 0 ]; then
    no_time "$name"
    return 0
  fi
  timeout -k 5 $limit bash "$root/tests/gpu/gpu_day.sh" --step "$@" >"$work/$name.log" 2>&1 </dev/null &
  child=$!
  wait $child
  code=$?
  child=''
  case $code in
    0) result=ok ;;
    77) result="nothing to do: $(tail -n 1 "$work/$name.log")" ;;
    124 | 137) result="not done within $limit s"; failed=1 ;;
    *) result="failed with $code: $(tail -n 1 "$work/$name.log")"; failed=1 ;;
  esac
  printf '%-34s %6d s  %s\n' "$name" $((SECONDS - start)) "$result" | tee -a "$work/summary-$call.txt"
  pack
}

each_plan() {  # each_plan FIRST LAST [OPTIONS OF EVERY OTHER PLAN]
  local number=0 plan
  for plan in "$plans"/*.plan.gz; do
    [ -e "$plan" ] || break
    number=$((number + 1))
    [ $number -ge "$1" ] && [ $number -le "$2" ] || continue
    if [ "$dry" = no ] && [ $((seconds - SECONDS - reserve)) -le 0 ]; then
      no_time "plans from $(basename "$plan" | cut -d - -f 1) on"
      return
    fi
    if [ $# -gt 2 ] && [ $((number % 2)) = 0 ]; then
      step "plan-$(basename "$plan" .plan.gz)-graph" 60 do_plan "$plan" "$3"
    else
      step "plan-$(basename "$plan" .plan.gz)" 60 do_plan "$plan"
    fi
  done
}

reserve=$((seconds / 20))  # time for packing, and for a step that ignores the signal to end
if [ "$dry" = no ]; then
  [ -x "$program" ] || usage "no program at '$program'"
  mkdir -p "$work" "$results" && results=$(cd "$results" && pwd) && work=$(cd "$work" && pwd) || exit 2
  rm -rf "$results"/.packing-*  # of a call that was killed
  packed=$(mktemp -d "$results/.packing-XXXXXX") || exit 2
  packs=$(find "$results" -maxdepth 1 -name "results-$call-*" -printf '%f\n' | sort | tail -n 1 | cut -d - -f 3 | cut -d . -f 1)
  packs=$((10#${packs:-0}))
  child=''
  trap 'rm -rf "$packed"' EXIT
  trap '[ -z "$child" ] || kill "$child" 2>/dev/null; echo "ended by a signal" >>"$work/summary-$call.txt"; pack; exit 1' TERM INT
  printf 'call %s, %s\n' "$call" "$(date -u)" >>"$work/summary-$call.txt"
fi

export GPU_DAY_PROGRAM=$program GPU_DAY_PYTHON=$python GPU_DAY_PLANS=$plans GPU_DAY_WORK=$work GPU_DAY_MODELS=$models
export GPU_DAY_RECORD=$record GPU_DAY_SMALL=$small PYTHONUNBUFFERED=1

step "kernels" 60 do_kernels
case $call in
  a)
    step "system" 60 do_system
    step "calibrate" 120 do_calibrate
    step "capture-$first" 120 do_capture "$first"
    each_plan 1 3
    step "tables" 20 do_tables
    step "questions" 400 do_questions
    ;;
  b)
    for model in ${models//,/ }; do
      step "alone-$model" 100 do_alone "$model"
      step "capture-$model" 200 do_capture "$model"
      step "pointers-$model" 60 do_pointers "$model"
    done
    reserve=2 step "tables" 20 do_tables
    ;;
  c)
    step "calibrate" 120 do_calibrate
    each_plan 1 40 --graph
    reserve=2 step "tables" 20 do_tables
    ;;
  d)
    step "calibrate" 120 do_calibrate
    step "losses-alone" 100 do_losses
    step "live-plan" 150 do_live_plan
    step "live" 150 do_live
    step "live-needs-plan" 60 do_live_needs_plan
    step "events-real" 60 do_real_events
    step "events-dry" 100 do_dry_events
    step "offload" 120 do_offload
    step "published" 300 do_published
    step "live-others" 150 do_live_others
    reserve=2 step "tables" 20 do_tables
    ;;
esac
exit $failed
