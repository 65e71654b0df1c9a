#!/usr/bin/env bash
# Everything that is to be found out on a machine with a GPU, in one call: calibrate the machine, capture models, sweep,
# execute the plans of every policy on the device, run live jobs, answer what the tracer's design leaves open.
#
#   validator/gpu_day.sh [options]
#     --program FILE    tidepool (default build/tidepool, or bin/tidepool of a bundle beside this script)
#     --python FILE     a python with torch, torchvision and transformers (default python3)
#     -o FOLDER         where logs and results go (default gpu-day); what is there already is not done again
#     --only A,B        only steps that begin with one of these words
#     --limit SECONDS   most that one step may take (default 540)
#     --dry-run         print the steps and end
#
# A step that fails or runs out of time ends nothing else. FOLDER/summary.txt says what became of each, FOLDER/NAME.log
# what it printed. Exit code 0: every step did what it should or had nothing to do; 1: some did not; 2: bad usage.
# shellcheck disable=SC2317  # steps are called by name
set -uo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
program='' python=python3 out=gpu-day only='' limit=540 dry=no

usage() {
  printf 'gpu_day.sh: %s; expected the options that the head of the script lists\n' "$*" >&2
  exit 2
}
inner=()
if [ "${1-}" = --step ]; then  # the script calling itself
  inner=("${@:3}")
  program=$GPU_DAY_PROGRAM python=$GPU_DAY_PYTHON out=$GPU_DAY_OUT
  set --
fi
while [ $# -gt 0 ]; do
  case $1 in
    --dry-run) dry=yes; shift; continue ;;
    --program | --python | -o | --only | --limit) [ $# -ge 2 ] || usage "$1 needs a value" ;;
    *) usage "unknown option '$1'" ;;
  esac
  case $1 in
    --program) program=$2 ;;
    --python) python=$2 ;;
    -o) out=$2 ;;
    --only) only=$2 ;;
    --limit) limit=$2 ;;
  esac
  shift 2
done
case $limit in '' | *[!0-9]* | 0) usage "--limit '$limit' is no number of seconds" ;; esac
if [ -z "$program" ]; then
  program=$root/build/tidepool
  [ -x "$root/bin/tidepool" ] && program=$root/bin/tidepool
fi

models='vgg16 resnet50 unet bert_large gpt2 swin_t'  # where no capture of one is there, the bundled sample stands in
capacities='0.5x 0.7x 0.9x'
failed=0

wanted() {
  local word
  [ -n "$only" ] || return 0
  for word in ${only//,/ }; do case $1 in "$word"*) return 0 ;; esac; done
  return 1
}

# step NAME COMMAND...: what COMMAND prints goes to NAME.log. Exit code 77 of it: there is nothing to do here.
step() {
  local name=$1 start code result
  shift
  wanted "$name" || return 0
  if [ "$dry" = yes ]; then
    printf '%-24s %s\n' "$name" "$*"
    return 0
  fi
  if [ -e "$out/$name.done" ]; then
    printf '%-24s %8s  %s\n' "$name" - "done before" | tee -a "$out/summary.txt"
    return 0
  fi
  start=$SECONDS
  # Functions of this script run in a shell of their own, so that timeout can end them.
  timeout -k 10 "$limit" bash "$root/validator/gpu_day.sh" --step "$name" "$@" >"$out/$name.log" 2>&1 </dev/null
  code=$?
  case $code in
    0) result=ok; touch "$out/$name.done" ;;
    77) result="nothing to do: $(tail -n 1 "$out/$name.log")" ;;
    124 | 137) result="not done within $limit s"; failed=1 ;;
    *) result="failed with $code: $(tail -n 1 "$out/$name.log")"; failed=1 ;;
  esac
  printf '%-24s %6d s  %s\n' "$name" $((SECONDS - start)) "$result" | tee -a "$out/summary.txt"
}

nothing() {
  printf '%s\n' "$*"
  exit 77
}

# The traces to work on, one name for each line: what was captured, else the sample of that name.
traces() {
  local model
  for model in $models; do
    if [ -s "$out/$model.tide" ]; then
      printf '%s\n' "$out/$model.tide"
    elif [ -s "$root/traces/samples/$model.tide" ]; then
      printf '%s\n' "$root/traces/samples/$model.tide"
    fi
  done
}

machine() {
  if [ -s "$out/machine.json" ]; then printf '%s\n' "$out/machine.json"; else printf 'h100-pcie5\n'; fi
}

do_system() {
  nvidia-smi || nothing "no nvidia-smi here"
  nvidia-smi topo -m || true
  "$program" --version
  "$python" -c 'import torch; print(torch.__version__, torch.cuda.get_device_name())' || true
}

do_calibrate() { "$program" calibrate -o "$out/machine.json"; }

do_capture() {
  local model=$1 script=$root/tracer/gpu_day/$1.py
  [ -f "$script" ] || nothing "no tracer/gpu_day/$model.py"
  "$program" record --skip 3 --iterations 3 -o "$out/$model.tide" -- "$python" "$script" && "$program" info "$out/$model.tide"
}

do_sweep() {
  local list=()
  mapfile -t list < <(traces)
  "$program" sweep "${list[@]}" --pool best-fit,pytorch --policy all --capacity 0.3x..1.0x/8 --machine "$(machine)" \
    --overhead-limit 4.0 -o "$out/results.sqlite"
}

# Every policy at three capacities: one plan after the other, each compared and timed; one JSON line each. A plan that
# was executed by an earlier call is not executed again.
do_validate() {
  local trace=$1 name policies policy capacity plan key result code bad=0 made=0 keep=()
  [ -s "$out/results.sqlite" ] && keep=(--results "$out/results.sqlite")
  name=$(basename "$trace" .tide)
  policies=$("$program" policies --json | tr '{' '\n' |
    sed -n 's/^"name":"\([^"]*\)","kind":"\(swap\|remat\|hybrid\|none\)".*/\1/p')
  if [ -z "$policies" ]; then
    printf 'no policies to execute\n'
    return 1
  fi
  for capacity in $capacities; do
    for policy in $policies; do
      key="$policy at $capacity"
      grep -qF "\"run\":\"$key\"" "$out/validate-$name.jsonl" 2>/dev/null && continue
      plan=$out/plan-$name.plan
      rm -f "$plan"
      if ! timeout --foreground 120 "$program" simulate "$trace" --policy "$policy" --capacity "$capacity" \
        --machine "$(machine)" --plan-out "$plan" >"$out/simulate-$name.txt" 2>&1 || [ ! -s "$plan" ]; then
        printf '%s: no plan: %s\n' "$key" "$(head -n 1 "$out/simulate-$name.txt")"
        continue
      fi
      result=$(timeout --foreground 180 "$program" validate "$plan" --trace "$trace" --backend cuda --repeat 3 \
        "${keep[@]}" --json 2>"$out/validate-$name.err")
      code=$?
      [ "$code" = 0 ] || bad=1
      case $code:$result in
        2:*) cat "$out/validate-$name.err"; exit 1 ;;
        [01]:'{'*) made=$((made + 1)) ;;
        *)
          printf '%s: no result, exit code %s: %s\n' "$key" "$code" "$(head -n 1 "$out/validate-$name.err")"
          bad=1
          continue
          ;;
      esac
      printf '{"run":"%s","result":%s}\n' "$key" "$result" >>"$out/validate-$name.jsonl"
      printf '%s: %s\n' "$key" "$result"
    done
  done
  rm -f "$out/plan-$name.plan"
  printf '%d plans executed\n' "$made"
  return "$bad"
}

do_graph() {
  local trace plan=$out/graph.plan
  trace=$(traces | head -n 1)
  "$program" simulate "$trace" --policy autoswap --capacity 0.7x --machine "$(machine)" --plan-out "$plan" || return
  "$program" validate "$plan" --trace "$trace" --backend cuda --repeat 5 --detail || return
  "$program" validate "$plan" --trace "$trace" --backend cuda --repeat 5 --graph
}

do_live() {
  local model=$1 script=$root/tracer/gpu_day/$1.py
  "$program" run --help >/dev/null 2>&1 || nothing "this tidepool has no run"
  if [ ! -f "$script" ] || [ ! -s "$out/$model.tide" ]; then nothing "$model was not captured"; fi
  "$program" simulate "$out/$model.tide" --first --policy autoswap --capacity 0.7x --machine "$(machine)" \
    --plan-out "$out/live-$model.plan" &&
    "$program" run --plan "$out/live-$model.plan" --trace "$out/$model.tide" -- "$python" "$script"
}

do_questions() {
  [ -x "$root/tracer/gpu_day/questions.sh" ] || nothing "no tracer/gpu_day/questions.sh"
  "$root/tracer/gpu_day/questions.sh" "$program" "$python" "$out"
}

if [ ${#inner[@]} -gt 0 ]; then
  "${inner[@]}"
  exit
fi
export GPU_DAY_PROGRAM=$program GPU_DAY_PYTHON=$python GPU_DAY_OUT=$out
if [ "$dry" = no ]; then
  [ -x "$program" ] || usage "no program at '$program'"
  mkdir -p "$out" || exit 2
  date >>"$out/summary.txt"
fi
step system do_system
step calibrate do_calibrate
for model in $models; do step "capture-$model" do_capture "$model"; done
step sweep do_sweep
while read -r trace; do step "validate-$(basename "$trace" .tide)" do_validate "$trace"; done < <(traces)
step graph do_graph
for model in $models; do step "live-$model" do_live "$model"; done
step questions do_questions
exit $failed
