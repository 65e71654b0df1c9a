#!/usr/bin/env python3
"""Public training scripts that torch.compile compiles, that call Triton kernels, or that DeepSpeed runs, unmodified.

    tests/recording/compiled_table.py --folder FOLDER --python PYTHON [--program build/tidepool] [SCRIPT...]

Each script is recorded dry, with nothing compiled before (`record --dry --torch`); then its trace goes through `fit`, `explain`,
`advise` and `simulate --policy tide` at 0.8x. If the script also runs on the CPU, as Inductor compiles it, it does so three times:
alone, recorded, and by `run` under a plan of `tide-remat` at 0.8x, which the compiler carries out. PYTHON has triton,
liger-kernel, deepspeed, transformers, trl, datasets and what torchtitan needs; the repositories are cloned into FOLDER at the
commits below.

The columns: seconds of the dry recording; ops; the ideal peak, and the peak that the plan needs, in MiB; what `fit` expects on the
device, in MiB; the changes of `advise` that fit; the numbers that the script prints on the CPU, and whether they are equal under
the plan, or why it does not run there; the bytes held for backward, as planned and as counted. If a command fails, its last
line takes the place of the row.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import public_inputs
from public_table import clone, equal, losses, words_of

LIMIT_S = 600  # of one command
DEVICE, CAPACITY = "h100-80gb", "0.8x"
COMMITS = {"karpathy/nanoGPT": "3adf61e154", "pytorch/torchtitan": "b5bcd76c66"}
TITAN = "-m torchtitan.train --module llama3 --compile.enable --training.steps 3 --dump-folder {out} --config"
TRL = "trl.scripts.sft --model_name_or_path {in}/llama --dataset_name {in}/chats --max_steps 8 --per_device_train_batch_size 4 " \
      "--logging_steps 1 --max_length 64 --report_to none --save_strategy no --bf16 False --output_dir {out}"
# Folder, arguments, and why no plan is executed on the CPU; (A|B) is A on the CPU and B in a dry run; {in}, {out} are folders.
SCRIPTS = {
    "nanoGPT": ("nanoGPT", "train.py config/train_shakespeare_char.py --device=(cpu|cuda) --compile=True --eval_iters=1 "
                "--eval_interval=5 --log_interval=1 (--block_size=64 --batch_size=4 --n_layer=4 --n_head=4 --n_embd=64 "
                "--dtype=float32|) --max_iters=8 --out_dir={out}", ""),
    "torchtitan": ("torchtitan", f"{TITAN} llama3_debugmodel", "its trainer asks for a GPU"),  # with flex attention
    "Liger": ("inputs", f"-m {TRL} --use_liger_kernel", "Triton's kernels need a GPU"),
    "ZeRO-3": ("inputs", f"-m torch.distributed.run --nproc-per-node 1 -m {TRL} --deepspeed {{in}}/zero3.json", "nothing is compiled"),
}
ENVIRONMENT = {"torchtitan": dict(RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", MASTER_ADDR="localhost", MASTER_PORT="29511"),
               "ZeRO-3": {"ACCELERATE_USE_DEEPSPEED": "true"}}


class Failed(Exception):
    """A command that ended with an error, and its last line."""


class Scripts:
    def __init__(self, asked):
        self._program, self._python = str(pathlib.Path(asked.program).resolve()), asked.python
        self._folder = pathlib.Path(asked.folder).resolve()

    def prepare(self):
        clone(self._folder, COMMITS)
        data, text = self._folder / "inputs", public_inputs.lines(400)
        if not data.exists():
            public_inputs.letters(self._folder / "nanoGPT/data/shakespeare_char")
            public_inputs.rows(self._folder / "torchtitan/tests/assets/c4_test/data.json", [{"text": line * 15} for line in text])
            public_inputs.rows(data / "chats/train.jsonl", [{"messages": [{"role": "user", "content": a}, {"role": "assistant",
                               "content": b}]} for a, b in zip(text[:32], text[50:])])
            public_inputs.write(data / "zero3.json", json.dumps({"zero_optimization": {"stage": 3}, **{
                key: "auto" for key in ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")}}))
            command = [self._python, "-c", "import pathlib, public_inputs; public_inputs.language_model(pathlib.Path('llama'))"]
            subprocess.run(command, check=True, cwd=data, env={**os.environ, "PYTHONPATH": str(pathlib.Path(__file__).parent)})

    def run(self, script, *before, dry=False):
        """What a script printed, and the seconds that it took."""
        folder, arguments, _ = SCRIPTS[script]
        words = words_of(self._folder, arguments, dry)
        environment = {**os.environ, **ENVIRONMENT.get(script, {}), "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false",
                       "OMP_NUM_THREADS": "1", "TORCHINDUCTOR_CACHE_DIR": str(self._folder / "compiled"),
                       "TRITON_CACHE_DIR": str(self._folder / "compiled/triton")}
        begin = time.monotonic()
        ran = subprocess.run([*before, self._python, *words], cwd=self._folder / folder, env=environment, capture_output=True, text=True,
                             timeout=LIMIT_S)
        return checked(ran), time.monotonic() - begin

    def tidepool(self, *arguments, no=0):
        """What a command answers. `no`: its status if the answer is no."""
        ran = subprocess.run([self._program, *map(str, arguments), "--json"], capture_output=True, text=True, timeout=LIMIT_S)
        return json.loads(checked(ran, no).stdout)

    def row(self, script):
        folder = self._folder / "results" / script.replace(" ", "_")
        for old in (folder, self._folder / "compiled"):
            shutil.rmtree(old, ignore_errors=True)
        folder.mkdir(parents=True)
        dry, live, plan = folder / "dry.tide", folder / "live.tide", folder / "run.plan"
        _, seconds = self.run(script, self._program, "record", "--dry", "--torch", "--device", DEVICE, "-o", dry, "--", dry=True)
        fit, info = self.tidepool("fit", dry, "--device", DEVICE), self.tidepool("info", dry)
        self.tidepool("explain", dry)
        simulated = self.tidepool("simulate", dry, "--policy", "tide", "--capacity", CAPACITY, "--machine", "h100-pcie5", "--first")
        changes = self.tidepool("advise", dry, "--capacity", CAPACITY, no=1)["changes"]
        cells = [f"{seconds:.0f}", info["ops"], mib(info["ideal_peak_bytes"]), mib(simulated["peak_bytes"]), mib(fit["predicted_bytes"]),
                 ", ".join(dict.fromkeys(change["kind"] for change in changes if change["fits"])) or "none"]
        if SCRIPTS[script][2]:
            return [*cells, SCRIPTS[script][2], "", ""]
        alone = losses(self.run(script)[0])
        self.run(script, self._program, "record", "--torch", "--no-gpu", "-o", live, "--")
        self.tidepool("simulate", live, "--policy", "tide-remat", "--capacity", CAPACITY, "--first", "--plan-out", plan)
        run = self.run(script, self._program, "run", "--json", "--plan", plan, "--trace", live, "--")[0]
        report = json.loads(next(line for line in run.stdout.splitlines() if "predicted_held_bytes" in line))
        return [*cells, f"{len(alone)} {equal(losses(run), alone)}", report["predicted_held_bytes"], report["measured_held_bytes"]]


def checked(ran, no=0):
    if ran.returncode not in (0, no):
        raise Failed(f"{' '.join(map(str, ran.args[1:3]))}: {(ran.stderr.strip().splitlines() or ['no message'])[-1][:200]}")
    return ran


def mib(size):
    return f"{size / 2**20:.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scripts", nargs="*", help=f"default: all of {', '.join(SCRIPTS)}")
    parser.add_argument("--folder", required=True)
    parser.add_argument("--program", default="build/tidepool")
    parser.add_argument("--python", default=sys.executable)
    asked = parser.parse_args()
    scripts = Scripts(asked)
    scripts.prepare()
    titles = ["script", "dry, s", "ops", "peak", "under the plan", "fit", "advice", "numbers", "planned, B", "held, B"]
    print("| " + " | ".join(titles) + " |\n|" + "---|" * len(titles))
    for script in asked.scripts or SCRIPTS:
        try:
            cells = scripts.row(script)
        except Failed as error:
            cells = [str(error)]
        print(f"| {script} | " + " | ".join(map(str, cells)) + " |", flush=True)


if __name__ == "__main__":
    main()
