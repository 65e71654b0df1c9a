#!/usr/bin/env python3
"""Peaks that others published of jobs on many GPUs, beside those of dry runs of the same scripts.

    tests/recording/published_table.py --folder FOLDER --python PYTHON [--program build/tidepool] [ROW...]

The rows of torchtitan are Llama 3.1 8B on H100 with 96 GB (its benchmarks/llama3_h100_202412_torchtitan.md): the memory that its
trainer logs. One rank is recorded, in a world of all ranks (titan_job.py). PYTHON has PyTorch 2.7, the release next to the measured
build of December 2024, and what torchtitan needs. The rows of ZeRO-3 are the dimensions of Qwen3-8B on four H100 with 80 GB
(tohtana/phantora-seq-gap-repro), all ranks recorded: whether memory runs out. PYTHON has DeepSpeed and transformers. The published
runs accumulate 16 micro-batches, these two. The repositories are cloned into FOLDER at the commits below.

The columns: what was published; what the job prints, in GiB; what `fit` says that PyTorch reserves, in GiB.
"""

import argparse
import base64
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys

import public_inputs
from public_table import clone, words_of

HERE = pathlib.Path(__file__).resolve().parent
LIMIT_S = 900  # of one recording
COMMITS = {"pytorch/torchtitan": "9dec370ad2", "tohtana/phantora-seq-gap-repro": "0b77092ead"}
TOKENS = 128000  # of Llama 3's tokenizer, without special ones
TITAN = f"{HERE}/titan_job.py train.py 32 --job.config_file train_configs/llama3_8b.toml --model.tokenizer_path {{in}}/words.model " \
        "--training.dataset c4_test --training.dataset_path {in}/c4 --training.batch_size 2 --training.steps 3 --training.seed 0 " \
        "--metrics.log_freq 1 --job.dump_folder {out}"
ZERO = "-m torch.distributed.run --standalone --nproc-per-node 4 full_model_zero3_repro.py --backend real --sequence-length {} " \
       "--gradient-accumulation 2 --warmup 1 --iterations 1"
EXPANDABLE = "expandable_segments:True"
# What was published: GiB, or whether memory ran out; the folder, the arguments, the allocator's setting, and the number of ranks.
ROWS = {
    **{f"torchtitan{compiled and ' compiled'}, {ranks} ranks": (wanted, "torchtitan", TITAN + compiled, EXPANDABLE, ranks)
       for wanted, compiled, ranks in ((82.4, "", 8), (77.0, " --training.compile", 8), (67.0, "", 128),
                                       (62.0, " --training.compile", 128))},
    **{f"ZeRO-3, {length} tokens{setting and ', expandable'}": (
        "out of memory" if (length, setting) == (4096, "") else "runs", "phantora-seq-gap-repro", ZERO.format(length), setting, 4)
       for length, setting in itertools.product((512, 1024, 2048, 4096), ("", EXPANDABLE))}}


def prepare(folder):
    clone(folder, COMMITS)
    words = itertools.chain.from_iterable(itertools.product(range(256), repeat=length) for length in (1, 2, 3))
    lines = (f"{base64.b64encode(bytes(word)).decode()} {i}\n" for i, word in enumerate(itertools.islice(words, TOKENS)))
    public_inputs.write(folder / "inputs/words.model", "".join(lines))
    public_inputs.rows(folder / "inputs/c4/data.json", [{"text": line * 15} for line in public_inputs.lines(400)])


def row(asked, folder, name):
    wanted, there, arguments, setting, ranks = ROWS[name]
    alone = there == "torchtitan"
    capacity = ["--capacity", "95GiB"] if alone else []
    trace = folder / "results" / f"{re.sub('[ ,]+', '_', name)}.{'tide' if alone else 'json'}"
    trace.parent.mkdir(exist_ok=True)
    world = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": str(ranks), "MASTER_ADDR": "localhost", "MASTER_PORT": "29533"}
    ran = subprocess.run([asked.program, "record", "--dry", "--device", "h100-80gb", *capacity, "-o", trace, "--", asked.python,
                          *words_of(folder, arguments, True)], cwd=folder / there, capture_output=True, text=True, timeout=LIMIT_S,
                         env={**os.environ, **(world if alone else {}), "PYTORCH_CUDA_ALLOC_CONF": setting, "OMP_NUM_THREADS": "1",
                              "HF_HUB_OFFLINE": "1"})
    printed = re.findall(r"memory: +([\d.]+)GiB|peak_reserved_mib\": ([\d.]+)", ran.stdout + ran.stderr)
    if "OutOfMemoryError" in ran.stderr + ran.stdout:
        got = "out of memory"
    elif ran.returncode != 0 or not printed:
        return [wanted, (ran.stderr.strip().splitlines() or ["no message"])[-1][:200], ""]
    else:
        got = float(printed[-1][0] or float(printed[-1][1]) / 1024)
    fit = json.loads(subprocess.run([asked.program, "fit", trace, "--device", "h100-80gb", *capacity, "--json"], capture_output=True,
                                    text=True, check=False).stdout)
    reserved = max(each["reserved_bytes"] for each in fit.get("ranks", [fit])) / 2**30
    text = got if isinstance(got, str) else f"{got:.2f}" if isinstance(wanted, str) else f"{got:.2f}, {got / wanted - 1:+.1%}"
    return [wanted, text, f"{reserved:.2f}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", help=f"default: all of {'; '.join(ROWS)}")
    parser.add_argument("--folder", required=True)
    parser.add_argument("--program", default="build/tidepool")
    parser.add_argument("--python", default=sys.executable)
    asked = parser.parse_args()
    asked.program, folder = str(pathlib.Path(asked.program).resolve()), pathlib.Path(asked.folder).resolve()
    prepare(folder)
    print("| job | published, GiB | printed by the dry job | reserved, by `fit` |\n|---|---|---|---|")
    for name in asked.rows or ROWS:
        print(f"| {name} | " + " | ".join(map(str, row(asked, folder, name))) + " |", flush=True)


if __name__ == "__main__":
    main()
