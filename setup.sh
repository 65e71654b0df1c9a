#!/usr/bin/env bash
# Sets Tidepool up on a fresh Debian 12 or Ubuntu 24.04: installs missing packages and builds Release into build/.
#   ./setup.sh          does nothing more
#   ./setup.sh demo     runs a sweep over two of the bundled samples, re-executes one of its plans on real memory and
#                       writes a report to look at
#   ./setup.sh all      builds the tests too
#   ./setup.sh test     builds the tests too, and runs all of them
#   ./setup.sh packages installs missing packages, and builds nothing
# Before one of these calls, on a machine without a CUDA toolkit:
#   ./setup.sh cuda-headers   fetches NVIDIA's headers, so that the recorder for GPUs is built and tested too; on a
#                             machine with a GPU, the calls that build fetch them
set -euo pipefail
cd "$(dirname "$0")"

packages=(g++ cmake ninja-build pkg-config catch2 coinor-libcbc-dev libbenchmark-dev libboost-dev
  libboost-filesystem-dev libcli11-dev libfmt-dev liblzma-dev libnlopt-cxx-dev libprotobuf-dev libsimdjson-dev
  libsqlite3-dev libxxhash-dev libzstd-dev nlohmann-json3-dev protobuf-compiler zlib1g-dev)
# For the tests of the Python package and of the documentation site.
test_packages=(mkdocs pybind11-dev python3-dev python3-matplotlib python3-pandas python3-pygments)

say() { printf '%s\n' "$*" >&2; }

# Runs a command as root.
as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# Installs the given packages that are missing.
install_missing() {
  local missing=() package
  if ! command -v apt-get >/dev/null; then
    say "setup.sh: no apt-get here; going on with what is installed (needed: $*)"
    return
  fi
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q '^install ok installed$' || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
    say "setup.sh: not root and no sudo; expected an administrator to run: apt-get install ${missing[*]}"
    exit 2
  fi
  say "installing ${missing[*]}"
  local attempt
  for attempt in 1 2 3; do
    if as_root apt-get -qq -o Acquire::Retries=3 update && as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y \
      --no-install-recommends -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 install "${missing[@]}" >/dev/null; then
      return
    fi
    [ "$attempt" = 3 ] || { say "setup.sh: attempt $attempt of 3 failed, trying again"; sleep $((attempt * 5)); }
  done
  say "setup.sh: apt-get could not install ${missing[*]}"
  exit 1
}

# Number of compilers to run at once: one for each core, but no more than fit in the memory (about 1.5 GB each).
parallel_jobs() {
  local cores fit
  cores=$(nproc)
  fit=$(awk '/MemAvailable/ {print int($2 / 1500000)}' /proc/meminfo 2>/dev/null || echo "$cores")
  [ "$fit" -ge 1 ] || fit=1
  echo $((cores < fit ? cores : fit))
}

# Passes the build's output on and shows its progress, in one line on a terminal, else after every tenth of the build.
show_progress() {
  local line done_so_far total tenth=0
  while IFS= read -r line; do
    printf '%s\n' "$line"
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
    done_so_far=${BASH_REMATCH[1]} total=${BASH_REMATCH[2]}
    if [ -t 2 ]; then
      printf '\r  %d of %d files' "$done_so_far" "$total" >&2
    elif [ $((done_so_far * 10 / total)) -gt $tenth ]; then
      tenth=$((done_so_far * 10 / total))
      say "  $done_so_far of $total files"
    fi
  done
  [ ! -t 2 ] || printf '\n' >&2
}

# Builds one of CMake's targets: program, or all.
build() {
  local log=build/setup.log settings=() began=$SECONDS
  [ ! -x /usr/bin/python3 ] || settings=(-DPython3_EXECUTABLE=/usr/bin/python3)  # apt-get installed packages for this Python
  say "building into $PWD/build (a few minutes the first time)"
  mkdir -p build
  if ! cmake --preset release "${settings[@]}" >"$log" 2>&1 ||
    ! cmake --build build -j "$(parallel_jobs)" --target "$1" 2>&1 | show_progress >>"$log"; then
    tail -n 40 "$log" >&2
    say "setup.sh: the build failed; the whole log is in $log"
    exit 1
  fi
  say "built in $((SECONDS - began)) s"
}

# Fetches the headers of the oldest CUDA that the recorder supports, from NVIDIA's Python packages. A recorder that is
# built with them works with later versions of CUDA too.
cuda_headers() {
  local to=build/cuda-headers python=python3 wheels wheel
  if ! python3 -m pip --version >/dev/null 2>&1; then
    install_missing python3 python3-pip
    python=/usr/bin/python3  # another Python, such as one of a virtual environment, would still have no pip
  fi
  wheels=$(mktemp -d)
  trap "rm -rf '$wheels'" EXIT
  say "fetching cuda.h, cupti.h and nvtx3 of CUDA 12.4 into $PWD/$to"
  if ! "$python" -m pip --disable-pip-version-check download --quiet --no-deps --only-binary=:all: --dest "$wheels" \
    nvidia-cuda-cupti-cu12==12.4.127 nvidia-cuda-runtime-cu12==12.4.127 nvidia-nvtx-cu12==12.4.127; then
    say "setup.sh: the headers could not be fetched; expected python3 with pip, and a network"
    exit 1
  fi
  mkdir -p "$to"
  for wheel in "$wheels"/*.whl; do "$python" -m zipfile -e "$wheel" "$wheels/out"; done
  cp -r "$wheels"/out/nvidia/*/include/. "$to"
}

# Fetches the headers on a machine with a GPU, unless they are there: the recorder for GPUs is built only with them.
cuda_headers_for_gpu() {
  local folder
  [ -e /proc/driver/nvidia/version ] || command -v nvidia-smi >/dev/null || return 0
  for folder in build/cuda-headers /usr/include {"${CUDA_HOME-}",/usr/local/cuda}/{include,extras/CUPTI/include}; do
    [ ! -e "$folder/cupti.h" ] || return 0
  done
  ./setup.sh cuda-headers || say "continuing without these headers: tidepool record will not see the GPU"
}

# Prints a sentence for each sample: the overhead of the best policy in 60 % of its memory, and the bound for it.
conclude() {
  build/tidepool query "$1" --to jsonl "SELECT printf('%s in %.0f %% of its memory: %+.1f %% time with %s; no plan costs less than %+.1f %%.',
      replace(replace(best.trace, 'traces/samples/', ''), '.tide', ''), 100 * best.capacity_share,
      100 * (best.overhead_ratio - 1), best.policy, 100.0 * max(0, runs.bound_ns - runs.baseline_ns) / runs.baseline_ns) AS line
    FROM best_policy AS best JOIN runs USING (run_key)
    WHERE best.addresses AND abs(best.capacity_share - 0.6) < 0.01 ORDER BY best.trace" |
    sed -E 's/^\{"line":"(.*)"\}$/\1/'
}

demo() {
  local samples=traces/samples out=build/demo
  mkdir -p "$out"
  rm -f "$out"/results.sqlite*  # otherwise the sweep would have nothing to do
  say "sweeping two training steps over eight policies, two pools and four capacities"
  build/tidepool sweep "$samples"/{resnet50,unet}.tide --pool best-fit,pytorch \
    --policy dtr-eq,coop,checkmate,lru-swap,autoswap,capuchin,tide-remat,tide --capacity 0.4x..1.0x/4 \
    --machine a100-pcie4 --overhead-limit 4.0 -o "$out/results.sqlite" >"$out/table.txt"
  build/tidepool simulate "$samples/resnet50.tide" --pool best-fit --policy dtr-eq --capacity 0.6x \
    --machine a100-pcie4 --plan-out "$out/resnet50.plan"
  build/tidepool validate "$out/resnet50.plan" --trace "$samples/resnet50.tide" --backend host
  build/tidepool report "$out/results.sqlite" "$samples/resnet50.tide" --policy none,dtr-eq,lru-swap,tide \
    --capacity 0.6x --machine a100-pcie4 -o build/report.html
  say ""
  conclude "$out/results.sqlite"
  say "the report: $PWD/build/report.html; the whole table: $PWD/$out/table.txt"
}

case "${1-}" in
  "" | demo | all | test | packages) ;;
  cuda-headers)
    cuda_headers
    exit
    ;;
  *)
    say "setup.sh: unknown word '$1'; expected demo, all, test, packages or cuda-headers, or nothing"
    exit 2
    ;;
esac
case "${1-}" in all | test) packages+=("${test_packages[@]}") ;; esac
install_missing "${packages[@]}"
[ "${1-}" != packages ] || exit 0
cuda_headers_for_gpu
case "${1-}" in all | test) build all ;; *) build program ;; esac
case "${1-}" in
  "" | all) say "built: $PWD/build/tidepool" ;;
  demo) demo ;;
  test) ctest --test-dir build --output-on-failure -j $((($(nproc) * 3 + 1) / 2)) ;;  # some tests mostly wait
esac
