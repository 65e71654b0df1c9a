#!/bin/sh
# Runs one fuzz target for some seconds: tests/fuzz/run.sh NAME SECONDS [JOBS]
# NAME is that of a .cpp file in this folder, such as jsonl. The corpus is kept in build-fuzz/corpus/NAME and begins with
# the committed inputs in tests/fuzz/corpus/NAME. For tide_file and jsonl, small sample traces are added. Findings are
# written to build-fuzz/findings/NAME.
set -eu
name=$1 seconds=$2 jobs=${3:-1}
cd "$(dirname "$0")/../.."
[ -d build-fuzz ] || cmake --preset fuzz > /dev/null
cmake --build build-fuzz --target "fuzz_$name" -j2

corpus=build-fuzz/corpus/$name findings=build-fuzz/findings/$name
mkdir -p "$corpus" "$findings"
[ -d "tests/fuzz/corpus/$name" ] && cp -r "tests/fuzz/corpus/$name/." "$corpus"

# Small samples are good seeds. For tide_file they are converted to the binary form, for jsonl to text.
if [ "$name" = tide_file ] || [ "$name" = jsonl ]; then
  cmake --build build-fuzz --target tidepool -j2
  for sample in $(find traces/samples tests/fuzz/corpus/jsonl -type f \( -name '*.tide' -o -name '*.jsonl' \) -size -64k 2>/dev/null); do
    to=$corpus/$(basename "$sample")
    if [ "$name" = jsonl ]; then build-fuzz/tidepool export "$sample" --to jsonl -o "$to.jsonl"
    else build-fuzz/tidepool import "$sample" -o "$to.tide" 2> /dev/null; fi
  done
fi

exec "build-fuzz/fuzz_$name" "$corpus" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=65536 \
  -artifact_prefix="$findings/" -print_final_stats=1 -jobs="$((jobs > 1 ? jobs : 0))" -workers="$jobs"
