#!/usr/bin/env python3
"""Compares the memory of a sharded optimizer on two ranks, dry and real, phase by phase.

    PYTHON tests/recording/ranks_table.py CODE MEASURED [--program PROGRAM] [--keep FOLDER]

CODE has cs336_systems/sharded_optimizer.py and cs336-basics (Wedsonlin/assignment2-systems at 87b0864), MEASURED the
files sharded_optimizer_baseline.json and sharded_optimizer_sharded.json of its results, made on two GPUs. Each mode is
recorded dry with the measured configuration (but one step instead of ten and no warm-up: the script reads the memory
before the warm-up and these steps). The script prints its own memory, so both columns are PyTorch's numbers, in GiB,
rounded to three places by the script.
Weights are not initialised, so that they take no memory of the host. PYTHON has PyTorch 2.11 (the version that CODE's
uv.lock names) for CUDA, einops, einx and jaxtyping; no GPU is needed.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

LIMIT_S = 3600  # of a recording
PHASES = ("after_model_init", "before_optimizer_step", "after_optimizer_step")
VALUES = ("allocated_gib", "phase_peak_gib")
RUN = """\
import sys
import torch

sys.path[:0] = {paths!r}
torch.nn.init.trunc_normal_ = lambda tensor, *_, **__: tensor
from cs336_systems import sharded_optimizer

if __name__ == "__main__":
    sharded_optimizer.main()
"""


def record(arguments, folder, mode, config):
    """The script's own results of a dry run."""
    script, results = folder / f"{mode}.py", folder / f"{mode}.json"
    script.write_text(RUN.format(paths=[str(arguments.code), str(arguments.code / "cs336-basics")]))
    options = {**config, "mode": mode, "warmup_steps": 0, "steps": 1, "output": results}
    flags = [part for key, value in options.items() if not isinstance(value, bool)
             for part in ("--" + key.replace("_", "-"), str(value))]
    subprocess.run([arguments.program, "record", "--dry", "--devices", str(config["world_size"]), "-o",
                    str(folder / f"{mode}.tide"), "--", sys.executable, str(script), *flags], check=True,
                   stdout=subprocess.DEVNULL, timeout=LIMIT_S)
    return json.loads(results.read_text())


def per_rank(results):
    return {item["rank"]: item["phases"] for item in results["results"][0]["memory"]["per_rank"]}


def compare(mode, real, dry):
    """Prints rows, and returns the differences."""
    differences = []
    for rank, phases in sorted(per_rank(real).items()):
        for phase in PHASES:
            for value in VALUES:
                measured, said = phases[phase][value], per_rank(dry)[rank][phase][value]
                differences.append(said / measured - 1)
                print(f"{mode:<10} {rank:>4}  {phase:<22} {value.removesuffix('_gib'):<12} {measured:>8.3f} {said:>8.3f} "
                      f"{differences[-1]:>+9.3%}")
    return differences


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("code", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("measured", type=pathlib.Path)
    parser.add_argument("--program", default="build/tidepool")
    parser.add_argument("--keep", type=lambda path: pathlib.Path(path).resolve(), help="folder for the recordings")
    arguments = parser.parse_args()
    differences = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.keep or pathlib.Path(scratch)
        folder.mkdir(exist_ok=True)
        print(f"{'mode':<10} {'rank':>4}  {'phase':<22} {'':<12} {'real':>8} {'dry':>8} {'':>9}")
        for mode in ("baseline", "sharded"):
            real = json.loads((arguments.measured / f"sharded_optimizer_{mode}.json").read_text())
            differences += compare(mode, real, record(arguments, folder, mode, real["config"]))
    print(f"largest difference {max(map(abs, differences)):.3%} of {len(differences)} values")


if __name__ == "__main__":
    main()
