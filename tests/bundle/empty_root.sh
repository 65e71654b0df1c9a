#!/usr/bin/env bash
# Runs the installed bundle in a root that has nothing but the C library and a shell.
#   empty_root.sh FOLDER      FOLDER: as given to install.sh
# Prints "skipped: REASON" where this user may not change to another root (chroot).
set -euo pipefail
folder=$(cd "$1" && pwd -P)
root=$folder/root
fail() { printf 'failed: %s\n' "$*"; exit 1; }

export PATH=$PATH:/usr/sbin
enter=(unshare -m)
[ "$(id -u)" = 0 ] || enter=(unshare -rm)
# A program finds itself through /proc, and from there its libraries.
inside() {
  "${enter[@]}" sh -c 'mount --rbind /proc "$1/proc" && exec env -i PATH="$PATH" LD_LIBRARY_PATH=/lib64 chroot "$1" /bin/sh -c "$2"' \
    sh "$root" "$1"
}
rm -rf "$root"
mkdir -p "$root"/{bin,lib64,proc,tmp,dev,work}
shell=$(command -v dash || command -v sh)
cp "$(readlink -f "$shell")" "$root/bin/sh"
cp -r "$folder/bundle" "$root/bundle"
c_library=$(ldd "$folder/bundle/bin/tidepool" | awk '$1 == "libc.so.6" {print $3}')
for library in libc.so.6 libm.so.6 libdl.so.2 librt.so.1 libpthread.so.0; do
  [ ! -e "$(dirname "$c_library")/$library" ] || cp -L "$(dirname "$c_library")/$library" "$root/lib64/"
done
loader=$(ldd "$folder/bundle/bin/tidepool" | awk '/ld-linux/ {print $1; exit}')
mkdir -p "$root$(dirname "$loader")"
cp -L "$loader" "$root$loader"
if ! "${enter[@]}" mount --rbind /proc "$root/proc" 2>/dev/null; then
  echo "skipped: neither root nor a user namespace, so there is no empty root to run in"
  exit 0
fi
inside true || fail "the empty root has no working shell"
for library in "$root"/bundle/share/tidepool/python/*.so "$root"/bundle/lib/tidepool/*.so; do
  name=${library#"$root"}
  inside "$loader --list $name" >"$folder/list.txt" 2>&1 || fail "$name: $(cat "$folder/list.txt")"
  ! grep "not found" "$folder/list.txt" || fail "$name: see above"
done
inside "/bundle/bin/tidepool --version" || fail "tidepool --version"
inside "cd /work && /bundle/bin/tidepool simulate /bundle/traces/samples/resnet50.tide --policy autoswap --capacity 0.7x \
  --plan-out step.plan >simulated && /bundle/bin/tidepool validate step.plan --trace /bundle/traces/samples/resnet50.tide \
  --backend host --arena 16MiB" || fail "a plan that is made and validated on the host"
inside "cd /work && /bundle/bin/tidepool validate step.plan --trace /bundle/traces/samples/resnet50.tide --backend cuda" \
  >"$folder/cuda.txt" 2>&1 && fail "validate --backend cuda without a driver"
grep -q "libcuda.so.1" "$folder/cuda.txt" || fail "validate --backend cuda: $(cat "$folder/cuda.txt")"
rm -rf "$root"
echo passed
