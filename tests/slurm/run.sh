#!/usr/bin/env bash
# Runs a real Slurm on this machine, in a folder of its own. Sweeps with a job array while a worker is killed, and
# compares the results with those of a sweep without Slurm.
#   tests/slurm/run.sh [PROGRAM]      PROGRAM: build/tidepool unless given
# SAMPLES (default "resnet50 unet") and POINTS (250 capacities each) make the sweeps larger.
# The test fails if it takes more than SECONDS_AT_MOST (880) seconds.
# Prints "skipped: REASON" and exits with 0 where Slurm or the rights to start it are missing, or another Slurm runs.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
program=$(realpath "${1:-$root/build/tidepool}")

skip() { echo "skipped: $*"; exit 0; }
[ "$(id -u)" = 0 ] || skip "needs root, to start Slurm's daemons"
for command in munged slurmctld slurmd sbatch squeue scontrol; do
  command -v "$command" >/dev/null || skip "no $command here (Debian: slurm-wlm, munge)"
done
if pgrep -x slurmctld >/dev/null || pgrep -x munged >/dev/null; then skip "another Slurm or munge runs here"; fi

work=$(mktemp -d /tmp/tidepool-slurm-XXXXXX)
chmod 755 "$work"
pids=()
stop() {
  local pid
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
  [ "${keep-}" ] && echo "kept: $work" || rm -rf "$work"
}
trap stop EXIT
# A test that takes too long is killed and cannot end the daemons; this trap ends the test before that.
trap 'fail "not done after ${SECONDS_AT_MOST:-880} s"' TERM
( trap 'kill $!' TERM; sleep "${SECONDS_AT_MOST:-880}" & wait $! && kill $$ ) >/dev/null 2>&1 &
pids+=($!)
fail() { echo "failed: $*"; keep=1; tail -n 20 "$work"/*.log 2>/dev/null; exit 1; }

# A sandbox may lack the needs of Slurm's default plug-ins (cgroups, a resolvable host name), so every plug-in is set
# here.
host=$(hostname -s)
port=$((20000 + RANDOM % 20000))
mkdir -p "$work"/{state,spool}
dd if=/dev/urandom of="$work/munge.key" bs=128 count=1 status=none
chmod 600 "$work/munge.key"
cat >"$work/slurm.conf" <<CONF
ClusterName=tidepool
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$work/munge.socket
CryptoType=crypto/munge
CredType=cred/munge
SlurmctldPort=$port
SlurmdPort=$((port + 1))
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=1,sched_interval=1
MinJobAge=2
ReturnToService=2
MpiDefault=none
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF=$work/slurm.conf

munged --foreground --force --key-file="$work/munge.key" --socket="$work/munge.socket" --pid-file="$work/munge.pid" \
  --seed-file="$work/munge.seed" --log-file="$work/munge.log" 2>/dev/null &
pids+=($!)
for _ in $(seq 1200); do [ -S "$work/munge.socket" ] && break; sleep 0.1; done
slurmctld -D -f "$SLURM_CONF" >"$work/ctld-out.log" 2>&1 &
pids+=($!)
slurmd -D -f "$SLURM_CONF" -N "$host" >"$work/slurmd-out.log" 2>&1 &
pids+=($!)
for _ in $(seq 1200); do
  state=$(sinfo --noheader --format=%T 2>/dev/null || true)
  [ "$state" = idle ] && break
  sleep 0.2
done
[ "$state" = idle ] || fail "the node is '$state' after 240 s, expected idle"

traces=()
for name in ${SAMPLES:-resnet50 unet}; do traces+=("$root/traces/samples/$name.tide"); done
sweep=(sweep "${traces[@]}" --pool best-fit,first-fit
  --policy none,lru,lru-swap,dtr-eq --capacity "0.5x..1.0x/${POINTS:-250}" --no-plot)
"$program" "${sweep[@]}" -o "$work/whole.sqlite" >/dev/null 2>"$work/whole.log" || fail "the sweep without Slurm"

# One worker is killed while it runs; the runs that it has not finished are submitted again. On a busy machine, the workers
# may end before one is killed; then the sweep is done again.
for _ in 1 2 3 4 5; do
  killed=
  rm -rf "$work"/slurm.sqlite*
  "$program" "${sweep[@]}" -o "$work/slurm.sqlite" --slurm --shards 6 >/dev/null 2>"$work/sweep.log" &
  sweeping=$!
  pids+=("$sweeping")
  while kill -0 "$sweeping" 2>/dev/null; do
    victim=$(pgrep -f "^$program sweep .*--shard [3-6]/6" | head -n 1 || true)
    if [ "$victim" ] && kill -9 "$victim" 2>/dev/null; then killed=$victim; break; fi
    sleep 0.01
  done
  wait "$sweeping" || fail "the sweep by Slurm: $(cat "$work/sweep.log")"
  cat "$work/sweep.log"
  [ -z "$killed" ] || ! grep -q "once more" "$work/sweep.log" || break
done
[ "$killed" ] || fail "no worker could be killed in time"
grep -q "once more" "$work/sweep.log" || fail "nothing was submitted again, although worker $killed was killed"
"$program" compare "$work/slurm.sqlite" "$work/whole.sqlite" || fail "the result sets differ"
echo "passed: a worker was killed, and the results are those without Slurm"
