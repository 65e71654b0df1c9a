#!/usr/bin/env python3
"""Memory of Llama-2-7B slices on eight ranks: dry against real, rank by rank.

    PYTHON tests/recording/galvatron_table.py MEASURED.csv [--file SUBSTRING] [--program PROGRAM] [--keep FOLDER]

MEASURED.csv has the measurements of Galvatron's memory profiler on eight GPUs (PKU-DAIR/Hetu-Galvatron, configs of
galvatron/models/gpt), a row for a slice and a rank: file, pp, tp, dp, checkpoint, vocab_tp, layers, global_batch, rank,
model_states_mib (allocated after backward), activation_mib (after forward, less before) and activation_peak_mib (the
most in an iteration, less that after backward). galvatron_job.py, beside this script, runs all slices on eight ranks in
one dry recording. The job prints its own memory, so that both columns are PyTorch's numbers. No number is fitted.

Rows give a sequence length of 2048 tokens. The measured length is 4096, that of the model's configuration: a
checkpointed layer keeps 32 MiB for each sample, which is 4096 tokens of 4096 numbers in bf16. So --tokens is 4096.
--file chooses rows by the name of their file: rows of memory_profiling_bf16_llama2-7b_seqlen2048_all.json were measured
with other settings, which are not known.

PYTHON has PyTorch 2.6 for CUDA 12.4, whose cuBLAS workspaces stay allocated, as those of the measured runs did; no GPU
is needed.
"""
import argparse
import csv
import json
import pathlib
import subprocess
import sys
import tempfile

LIMIT_S = 7200  # of the recording
VALUES = {"model_states_mib": lambda said: said["backward"],
          "activation_mib": lambda said: said["forward"] - said["before"],
          "activation_peak_mib": lambda said: said["peak"] - said["backward"]}


def slice_of(row, tokens):
    """The argument of galvatron_job.py."""
    vocabulary_tp = row["tp"] if row["vocab_tp"] == "1" else "1"
    values = row["pp"], row["tp"], vocabulary_tp, row["checkpoint"], row["layers"], row["global_batch"], str(tokens)
    return ",".join(values)


def record(arguments, folder, slices, ranks):
    """The output of the first and the last rank, by slice and rank."""
    job = pathlib.Path(__file__).parent / "galvatron_job.py"
    command = [arguments.program, "record", "--dry", "--device", "a100-80gb", "-o", str(folder / "slices.json"), "--",
               sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks), str(job),
               *slices]
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                           timeout=LIMIT_S)
    if ended.returncode != 0:
        sys.exit(f"{' '.join(command)} exited with {ended.returncode}:\n{ended.stdout[-2000:]}{ended.stderr[-4000:]}")
    said = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith('{"slice"')]
    return {(each["slice"], each["rank"]): each for each in said}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measured", type=pathlib.Path)
    parser.add_argument("--file", default="", metavar="SUBSTRING")
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--program", default="build/tidepool")
    parser.add_argument("--keep", type=lambda path: pathlib.Path(path).resolve(), help="folder for the recordings")
    arguments = parser.parse_args()
    with arguments.measured.open() as file:
        rows = [row for row in csv.DictReader(file) if arguments.file in row["file"]]
    ranks = {int(row["pp"]) * int(row["tp"]) * int(row["dp"]) for row in rows}
    if len(ranks) != 1:
        sys.exit(f"{arguments.measured}: rows with {sorted(ranks)} ranks; expected one number of ranks in all rows")
    slices = list(dict.fromkeys(slice_of(row, arguments.tokens) for row in rows))
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.keep or pathlib.Path(scratch)
        folder.mkdir(exist_ok=True)
        said = record(arguments, folder, slices, ranks.pop())
    print(f"{'pp_tp_dp':<10} {'layers':>6} {'rank':>4}  {'MiB':<20} {'real':>8} {'dry':>8} {'':>8}")
    errors = {value: [] for value in VALUES}
    for row in rows:
        name = "_".join((row["pp"], row["tp"], row["dp"])) + ("_c" if row["checkpoint"] == "1" else "") \
            + ("_vtp" if row["vocab_tp"] == "1" else "")
        for value, found in VALUES.items():
            measured, dry = float(row[value]), found(said[slice_of(row, arguments.tokens), int(row["rank"])])
            errors[value].append(abs(dry / measured - 1))
            print(f"{name:<10} {row['layers']:>6} {row['rank']:>4}  {value.removesuffix('_mib'):<20} {measured:>8.1f} "
                  f"{dry:>8.1f} {dry / measured - 1:>+8.2%}")
    for value, found in errors.items():
        above = sum(error > 0.02 for error in found)
        print(f"{value.removesuffix('_mib')}: {len(found)} rows, mean error {sum(found) / len(found):.2%}, "
              f"largest {max(found):.2%}, {above} above 2 %")


if __name__ == "__main__":
    main()
