#!/usr/bin/env bash
# Makes the plans that gpu_day.sh executes. They are made beforehand, because planning needs no GPU.
#
#   tests/gpu/gpu_plans.sh [--program FILE] [--machine NAME] [--samples A,B] [-o FOLDER]
#     --program FILE    tidepool (default build/tidepool, or bin/tidepool of the bundle that this script is in)
#     --machine NAME    machine of the plans (default h100-pcie5); validate predicts them again for its own machine
#     --samples A,B     bundled samples to plan (default: all but the largest)
#     -o FOLDER         output (default: plans beside validator/)
#
# Writes FOLDER/NN-SAMPLE-POLICY-CAPACITY.plan.gz; NN is the order of execution: all samples under one policy, then all
# samples under the next policy. Plans of an earlier call are removed. A policy that finds no plan for a sample is named and left out. Exit code 1: there is no plan
# at all.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
program='' machine=h100-pcie5 out=$root/plans
samples=gpt2,resnet50,bert_large,swin_t,unet,vgg16,inception_v3,bilstm
runs='autoswap:0.7x tide:0.6x capuchin:0.7x lru-swap:0.7x torch-offload:1.0x'

usage() {
  printf 'gpu_plans.sh: %s; expected the options that the head of the script lists\n' "$*" >&2
  exit 2
}
while [ $# -gt 0 ]; do
  case $1 in
    --program | --machine | --samples | -o) [ $# -ge 2 ] || usage "$1 needs a value" ;;
    *) usage "unknown option '$1'" ;;
  esac
  case $1 in
    --program) program=$2 ;;
    --machine) machine=$2 ;;
    --samples) samples=$2 ;;
    -o) out=$2 ;;
  esac
  shift 2
done
if [ -z "$program" ]; then
  program=$root/build/tidepool
  [ -x "$root/bin/tidepool" ] && program=$root/bin/tidepool
fi
[ -x "$program" ] || usage "no program at '$program'"

mkdir -p "$out"
rm -f "$out"/*.plan.gz
number=0
for run in $runs; do
  policy=${run%:*} capacity=${run#*:}
  for sample in ${samples//,/ }; do
    plan=$out/new.plan
    if ! timeout 120 "$program" simulate "$root/traces/samples/$sample.tide" --first --policy "$policy" --capacity "$capacity" \
      --machine "$machine" --plan-out "$plan" >"$out/said.txt" 2>&1 || [ ! -s "$plan" ]; then
      printf '%s: %s at %s: no plan: %s\n' "$sample" "$policy" "$capacity" "$(head -n 1 "$out/said.txt")"
      rm -f "$plan"
      continue
    fi
    number=$((number + 1))
    name=$(printf '%02d-%s-%s-%s' $number "$sample" "$policy" "$capacity")
    gzip -9 -n -c "$plan" >"$out/$name.plan.gz"
    rm -f "$plan"
  done
done
rm -f "$out/said.txt"
printf '%d plans, %s\n' $number "$(du -sh "$out" | cut -f 1)"
[ $number -gt 0 ]
