#!/usr/bin/env bash
# Runs a command in a root that has only the C library, a shell with its usual tools, Python and PyTorch. It has no
# other library that the program is linked with, and none of the sources.
#   torch_root.sh ROOT PYTHON FOLDER... -- COMMAND...     each FOLDER is there under its own path
# Prints "no empty root" and exits with 77 where this user may not change to another root (chroot).
set -euo pipefail
root=$1 python=$2 folders=()
shift 2
while [ "$1" != -- ]; do folders+=("$1"); shift; done
shift

export PATH=$PATH:/usr/sbin
enter=(unshare -m)
[ "$(id -u)" = 0 ] || enter=(unshare -rm)
rm -rf "$root"
mkdir -p "$root"/{proc,dev,tmp,etc,usr/bin,lib64}
if ! "${enter[@]}" mount --rbind /proc "$root/proc" 2>/dev/null; then
  echo "no empty root: neither root nor a user namespace"
  exit 77
fi
echo 'root:x:0:0::/tmp:/bin/bash' >"$root/etc/passwd"

# A file, and the libraries that it is linked with, under their own paths.
copy() { [ -e "$root$1" ] || { mkdir -p "$root$(dirname "$1")" && cp -L "$1" "$root$1"; }; }
libraries() {
  ldd "$@" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// {print $3} $1 ~ /^\// && $2 ~ /^\(/ {print $1}' | sort -u
}
for tool in bash env sh awk basename cat chmod cp cut date diff dirname du find grep gzip head id ldd ls mkdir mktemp mv nproc \
  readlink rm sed seq sleep sort split stat tail tar tee timeout touch uname wc zstd; do
  file=$(command -v $tool) || continue
  file=$(readlink -f "$file")
  copy "$file"
  [ "$file" = /usr/bin/$tool ] || ln -sf "$file" "$root/usr/bin/$tool"
  for library in $(libraries "$file"); do copy "$library"; done
done
[ -e "$root/bin" ] || ln -s usr/bin "$root/bin"

# Python: its program, its modules, and the libraries that PyTorch and the modules in C are linked with.
mapfile -t paths < <("$python" -c 'import os, sys, sysconfig
print(os.path.realpath(sys.executable))
for path in dict.fromkeys([sys.prefix, sysconfig.get_path("stdlib"), *sys.path]):
    if os.path.isdir(path) and path not in ("/usr", "/usr/local"):
        print(path)')
copy "${paths[0]}"
mkdir -p "$root$(dirname "$python")"
while [ -L "$python" ] && [ ! -e "$root$python" ]; do  # the links of a virtual environment, one after the other
  next=$(readlink "$python")
  case $next in /*) ;; *) next=$(dirname "$python")/$next ;; esac
  mkdir -p "$root$(dirname "$python")" && ln -s "$next" "$root$python"
  python=$next
done
modules=$(find "${paths[@]:1}" -path '*/lib-dynload/*.so' -o -path '*/torch/lib/libtorch_python.so' -o -path '*/torch/lib/libtorch_cpu.so')
# shellcheck disable=SC2086  # one file a word
for library in $(libraries "${paths[0]}" $modules); do
  mounted=no
  for path in "${paths[@]:1}"; do case $library in "$path"/*) mounted=yes ;; esac; done
  [ $mounted = yes ] || copy "$library"
done

"${enter[@]}" bash -c 'set -eu
  root=$1
  shift
  mount --rbind /proc "$root/proc"
  mount --rbind /dev "$root/dev"
  while [ "$1" != -- ]; do
    mkdir -p "$root$1"
    mountpoint -q "$root$1" || mount --rbind "$1" "$root$1"
    shift
  done
  shift
  exec env -i PATH=/usr/bin HOME=/tmp ${TIDEPOOL_REQUIRE_TORCH+TIDEPOOL_REQUIRE_TORCH=1} "$(command -v chroot)" "$root" "$@"' bash "$root" "${paths[@]:1}" "${folders[@]}" -- "$@"
