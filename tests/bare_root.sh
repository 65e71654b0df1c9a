#!/usr/bin/env bash
# The README's commands on a bare machine: makes a bare Debian 12 beside this system, copies this repository into it and
# runs there the commands that the README marks with "tests/bare_root.sh runs": all steps from the clone to the frontier
# of a user's script, and then the demo. Only URL is replaced, by the path of the copy. Then checks the results.
#   tests/bare_root.sh [FOLDER]     FOLDER: the root is made there and stays; without FOLDER, in a temporary folder,
#                                   which is removed if all is well
# The copy has the committed files. Takes 8 GB of disk, the network and about half an hour on two cores. Needs root,
# debootstrap, git, python3 and a mirror, and prints "skipped: REASON" and exits with 0 if one of these is missing. Also
# needs the right to mount, and fails without it.
#   MIRROR       a mirror of Debian 12; default: that of this machine's apt, if this is Debian 12
#   TORCH        arguments of pip install; default "torch numpy" (wheels for CPUs alone are a tenth as large)
set -euo pipefail
repository=$(cd "$(dirname "$0")/.." && pwd)
suite=bookworm

skip() { echo "skipped: $*"; exit 0; }
[ "$(id -u)" = 0 ] || skip "needs root, to make a root"
for command in debootstrap git python3; do command -v "$command" >/dev/null || skip "no $command here"; done
mirror=${MIRROR-$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Identifier: Packages' 2>/dev/null |
  awk -v suite="$suite" '$2 == suite && $3 == "main" && !found++ {print $1}' || true)}
[ "$mirror" ] || skip "apt knows no mirror of Debian 12 here; MIRROR= names one"

kept=${1-}
root=${kept:-$(mktemp -d /var/tmp/tidepool-bare-XXXXXX)}
mkdir -p "$root"
root=$(cd "$root" && pwd)
[ -z "$(ls -A "$root")" ] || { echo "tests/bare_root.sh: $root is not empty; expected a new folder" >&2; exit 2; }
leave() {
  local place mounted=
  for place in "$root"/{proc,sys}; do  # debootstrap mounts both, where it may
    umount "$place" 2>/dev/null || true
    ! mountpoint -q "$place" || mounted=yes
  done
  if [ "$kept$mounted" ]; then echo "the root is in $root"; else rm -rf --one-file-system "$root"; fi
}
trap leave EXIT
fail() { kept=yes; echo "failed: $*"; exit 1; }

step() { printf '== %s (%d s)\n' "$*" $SECONDS; }
# Runs a command in the bare root, with no variables of this environment but those for the network.
inside() {
  local network=() name
  for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY PIP_{INDEX_URL,EXTRA_INDEX_URL,CERT}; do
    [ -z "${!name-}" ] || network+=("$name=${!name}")
  done
  env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 TERM=dumb \
    "${network[@]}" chroot "$root" bash -euo pipefail -O expand_aliases -c "$1"
}
# Prints the commands of the README's blocks that have a mark, in order.
commands_of() {
  python3 - "$repository" "$1" <<'END'
import pathlib, sys
root, mark = pathlib.Path(sys.argv[1]), sys.argv[2]
sys.path.insert(0, str(root / "tests" / "docs"))
sys.dont_write_bytecode = True
import documents_test
found = [block[2] for block in documents_test.blocks(root / "README.md") if block[3] == mark]
assert found, f"README.md has no block that is marked {mark!r}"
print("\n".join(line for lines in found for line in lines))
END
}
own=$(commands_of "tests/bare_root.sh runs it")
demo=$(commands_of "they are the build and the tests; tests/bare_root.sh runs the first" | head -n 1)

step "a bare Debian 12"
debootstrap --variant=minbase "$suite" "$root" "$mirror" >/dev/null || fail "debootstrap; see debootstrap/debootstrap.log"
mount -t proc proc "$root/proc"
apt-config dump | grep -E '^Acquire::(http|https|Check-)' >"$root/etc/apt/apt.conf.d/80network" || true

step "what the user has: git, PyTorch in a virtual environment, a script"
inside "apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install \
  ca-certificates git python3-venv >/dev/null 2>&1" || fail "apt-get"
for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/ssl/certs/ca-certificates.crt; do
  [ ! -e "$file" ] || cp -L "$file" "$root$file"
done
inside "python3 -m venv /root/venv && /root/venv/bin/pip install --no-cache-dir -q ${TORCH-torch numpy}" || fail "pip"
git clone -q --bare "$repository" "$root/srv/tidepool.git"
chown -R 0:0 "$root/srv/tidepool.git"
mkdir "$root/root/work"
cat >"$root/root/work/train.py" <<'END'
import torch
from torch import nn

torch.manual_seed(0)
blocks = [nn.Sequential(nn.Conv2d(32, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.Dropout(0.1)) for _ in range(8)]
model = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for step in range(4):
    images, labels = torch.randn(32, 3, 32, 32), torch.randint(0, 10, (32,))
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    print(f"step {step}: loss {loss.item():.3f}")
END

step "from git clone to the frontier of that script"
echo "$own"
path_begin=$SECONDS
inside "cd /root/work; source /root/venv/bin/activate
set -x
${own//URL//srv/tidepool.git}" || fail "the commands that the README shows for a script of one's own"
path_seconds=$((SECONDS - path_begin))

step "the demo"
echo "$demo"
inside "cd /root/work/tidepool && $demo" || fail "$demo"

step "what came out"
inside "cd /root/work && python3 -" <<'END' || fail "what came out"
import pathlib, sqlite3
rows = sqlite3.connect("frontier.sqlite").execute(
    "select trace, policy, capacity_bytes, overhead_ratio, bound_ns from runs where outcome = 'ok'").fetchall()
assert rows and all(row[0] == "step.tide" for row in rows), rows
for policy in sorted({row[1] for row in rows}):
    least = min(row[2:4] for row in rows if row[1] == policy)
    print(f"{policy}: down to {least[0] / 2**20:.1f} MiB, {least[1]:.3f} of the time")
page = pathlib.Path("report.html").read_text()
assert "step.tide" in page, "report.html does not name the trace"
assert "resnet50.tide" in pathlib.Path("tidepool/build/report.html").read_text(), "the demo's report"
END
echo "passed: $path_seconds s from git clone to the report, with $(nproc) cores"
