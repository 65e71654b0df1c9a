#!/usr/bin/env bash
# Installs the bundle, moves it, and checks the libraries that its programs and libraries are linked with.
#   install.sh CMAKE BUILD FOLDER     the bundle is moved to FOLDER/bundle
set -euo pipefail
cmake=$1 build=$2 folder=$3
fail() { printf 'failed: %s\n' "$*"; exit 1; }

rm -rf "$folder"
mkdir -p "$folder"
"$cmake" --install "$build" --component bundle --prefix "$folder/first" >"$folder/install.log" 2>&1 ||
  { cat "$folder/install.log"; fail "cmake --install"; }
mv "$folder/first" "$folder/bundle"
bundle=$(cd "$folder/bundle" && pwd -P)

for file in bin/tidepool lib/tidepool/libtidepool_dry.so lib/tidepool/libtidepool_dry_nvml.so lib/tidepool/driver/libcuda.so.1 \
  share/tidepool/python/libtidepool_allocator.so share/tidepool/python/inject/sitecustomize.py \
  share/tidepool/python/tidepool_torch/live.py share/tidepool/python/tidepool_live/session.py \
  tests/gpu/gpu_day.sh tests/gpu/gpt2.py tests/gpu/questions.sh traces/samples/gpt2.tide; do
  [ -f "$bundle/$file" ] || fail "the bundle has no $file"
done
if [ -e "$build/libtidepool_inject.so" ]; then
  [ -f "$bundle/lib/tidepool/libtidepool_inject.so" ] || fail "the bundle has no lib/tidepool/libtidepool_inject.so"
fi
while read -r link; do
  case $(readlink -e "$link") in
    "$bundle"/*) ;;
    *) fail "$link leads to $(readlink "$link"); expected a file of the bundle" ;;
  esac
done < <(find "$bundle" -type l)

# Every library must be the bundle's own, or one of the C library.
while read -r file; do
  env -i PATH="$PATH" ldd "$file" >"$folder/ldd.txt" 2>&1 || fail "ldd $file: $(cat "$folder/ldd.txt")"
  while read -r name arrow place _; do
    case $name in
      linux-vdso.so.* | statically | /*/ld-linux-* | ld-linux-*) continue ;;
      libc.so.6 | libm.so.6 | libdl.so.2 | librt.so.1 | libpthread.so.0) continue ;;
    esac
    [ "$arrow" = '=>' ] || fail "$file: $name $arrow $place; expected NAME => FILE"
    case $(realpath -s "$place" 2>/dev/null) in
      "$bundle"/lib/*) ;;
      *) fail "$file needs $name, which is $place; expected it in $bundle/lib" ;;
    esac
  done <"$folder/ldd.txt"
done < <(find "$bundle" -type f \( -name '*.so' -o -name '*.so.*' -o -name tidepool \) \
  \( -path '*/bin/*' -o -path '*/lib/tidepool/*' -o -path '*/python/*' \))
printf 'passed: %s, %s\n' "$bundle" "$(du -sh "$bundle" | cut -f 1)"
