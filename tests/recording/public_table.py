#!/usr/bin/env python3
"""Public training scripts, unmodified, alone and with Tidepool: the numbers that they print, and their memory under a plan.

    tests/recording/public_table.py --folder FOLDER [--program build/tidepool] [SCRIPT...]

Each script runs on the CPU with small inputs (public_inputs.py) four times: alone, under `record --torch`, and under `tidepool run`
with a plan of `tide` at 0.7x (or the least capacity above for which there is one); and under `record --dry --torch`, with its
own options for a GPU. Random numbers are seeded before the script starts, unless it does so itself. The repositories are cloned into
--folder at the commits below. The Python that --python names has their packages: torchvision timm diffusers transformers peft trl
datasets accelerate lightning torch_geometric scipy tensorboard jsonargparse[signatures] pycocotools evaluate soundfile librosa; for
speech, datasets is older than 4.

The rows: numbers printed, and whether recording and the plan leave them equal; ops recorded live and dry; the capacity; steps that
were as recorded; the peak measured and promised, in MiB.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
LIMIT_S = 900  # of one run
CAPACITIES = ("0.7x", "0.8x", "0.9x", "0.95x")
COMMITS = {
    "pytorch/examples": "77f55b9121", "karpathy/nanoGPT": "3adf61e154", "karpathy/minGPT": "37baab71b9",
    "huggingface/pytorch-image-models": "aa4b5850c1", "huggingface/diffusers": "58eb52c080", "huggingface/peft": "5d602fdbff",
    "huggingface/trl": "f2cd57710a", "Lightning-AI/pytorch-lightning": "7f0c3436cd", "pyg-team/pytorch_geometric": "5c6461b230",
    "chanwutk/vision_references": "aea0f07fa3", "huggingface/transformers": "1618d44b92"}
TRAINER = "--num_train_epochs 1 --per_device_train_batch_size 4 --logging_steps 1 --max_length 64 --report_to none --save_strategy no " \
          "--bf16 False --output_dir {out} (--use_cpu|)"
# Folder and arguments; (A|B) is A on the CPU and B in a dry run, and {in}, {out} are folders.
SCRIPTS = {
    "mnist": ("examples/mnist", "main.py --epochs 1 --log-interval 1 --test-batch-size 32 (--no-accel|)"),
    "vae": ("examples/vae", "main.py --epochs 1 --batch-size 32 --log-interval 1 (--no-accel|)"),
    "mnist rnn": ("examples/mnist_rnn", "main.py --epochs 1 --log-interval 1 --test-batch-size 32 (|--accel)"),
    "siamese": ("examples/siamese_network", "main.py --epochs 1 --batch-size 64 --test-batch-size 32 --log-interval 1 (--no-accel|)"),
    "dcgan": ("examples/dcgan", "main.py --dataset fake --niter 1 --batchSize 64 --ngf 8 --ndf 8 --workers 0 --outf {out} (|--accel)"),
    "lstm": ("examples/word_language_model", "main.py --data data/small --epochs 1 --emsize 32 --nhid 32 --batch_size 4 "
             "--log-interval 1 (|--accel)"),
    "transformer": ("examples/word_language_model", "main.py --data data/small --epochs 1 --model Transformer --emsize 32 --nhead 2 "
                    "--nhid 32 --batch_size 4 --log-interval 1 (|--accel)"),
    "nanoGPT": ("nanoGPT", "train.py config/train_shakespeare_char.py --device=(cpu|cuda) --compile=False --eval_iters=1 "
                "--eval_interval=5 --log_interval=1 --block_size=64 --batch_size=4 --n_layer=4 --n_head=4 --n_embd=64 --max_iters=8 "
                "--dtype=float32 --out_dir={out}"),
    "minGPT": ("minGPT", "projects/adder/adder.py --trainer.max_iters=8 --trainer.batch_size=4 --model.model_type=gpt-nano "
               "--trainer.num_workers=0"),
    "timm ResNet-18": ("pytorch-image-models", "train.py --data-dir {in}/classes --model resnet18 --num-classes 2 -b 4 --epochs 1 "
                       "--img-size 64 --workers 1 --log-interval 1 --device (cpu|cuda) --output {out}"),
    "timm ViT, averaged": ("pytorch-image-models", "train.py --data-dir {in}/classes --model vit_tiny_patch16_224 --num-classes 2 -b 4 "
                           "--epochs 1 --img-size 64 --model-kwargs img_size=64 --workers 1 --log-interval 1 --device (cpu|cuda) "
                           "--opt adamw --model-ema --clip-grad 1 --output {out}"),
    "diffusers": ("diffusers/examples/unconditional_image_generation", "train_unconditional.py --train_data_dir {in}/pictures "
                  "--resolution 32 --train_batch_size 2 --num_epochs 1 --model_config_name_or_path {in}/unet.json --ddpm_num_steps 10 "
                  "--ddpm_num_inference_steps 2 --eval_batch_size 2 --save_images_epochs 10 --output_dir {out}"),
    "diffusers LoRA": ("diffusers/examples/text_to_image", "train_text_to_image_lora.py --pretrained_model_name_or_path {in}/diffusion "
                       "--train_data_dir {in}/captions --caption_column text --resolution 32 --train_batch_size 2 --max_train_steps 8 "
                       "--rank 4 --seed 0 --output_dir {out}"),
    "peft OLoRA": ("peft/examples/olora_finetuning", "olora_finetuning.py --base_model {in}/llama --data_path {in}/instructions "
                   "--batch_size 4 --cutoff_len 64 --device_map (cpu|cuda) --dtype float32 --lora_r 4 --eval_step 4 --save_step 4 "
                   "--seed 0 --output_dir {out}"),
    "trl SFT": ("trl/trl/scripts", f"sft.py --model_name_or_path {{in}}/llama --dataset_name {{in}}/chats {TRAINER}"),
    "trl DPO": ("trl/trl/scripts", f"dpo.py --model_name_or_path {{in}}/llama --dataset_name {{in}}/choices --use_peft {TRAINER}"),
    "trl reward": ("trl/trl/scripts", f"reward.py --model_name_or_path {{in}}/llama --dataset_name {{in}}/choices {TRAINER}"),
    "trl KTO": ("trl/trl/scripts", f"kto.py --model_name_or_path {{in}}/llama --dataset_name {{in}}/choices {TRAINER}"),
    "lightning": ("pytorch-lightning/examples/pytorch/basics", "autoencoder.py --trainer.max_epochs 1 --trainer.accelerator (cpu|gpu) "
                  "--trainer.devices 1 --trainer.limit_train_batches 8 --trainer.limit_val_batches 2 --trainer.logger false "
                  "--trainer.default_root_dir {out} --seed_everything 0"),
    "detection": ("vision_references/references/detection", "train.py --data-path {in}/boxes --model ssdlite320_mobilenet_v3_large "
                  "--epochs 1 -b 2 --workers 0 --print-freq 1 --lr 0.001 --device (cpu|cuda) --output-dir {out}"),
    "speech, CTC": ("transformers/examples/pytorch/speech-recognition", "run_speech_recognition_ctc.py --dataset_name {in}/speech "
                    "--model_name_or_path small/wav2vec2 --train_split_name train --eval_split_name train --do_eval "
                    "--eval_metrics {in}/wer --text_column_name text --length_column_name length --freeze_feature_encoder "
                    "--mask_time_prob 0 --do_train --max_steps 8 --per_device_train_batch_size 2 --logging_steps 1 --report_to none "
                    "--save_strategy no --output_dir {out} (--use_cpu|)"),
    "language model": ("transformers/examples/pytorch/language-modeling", "run_clm.py --train_file {in}/sentences/train.json "
                       "--model_name_or_path {in}/llama --block_size 64 --do_train --max_steps 8 --logging_steps 1 "
                       "--per_device_train_batch_size 4 --report_to none --save_strategy no --output_dir {out} (--use_cpu|)"),
    "PyG GCN": ("pytorch_geometric/examples", "gcn.py --epochs 6"),
    "PyG GAT": ("pytorch_geometric/examples", "gat.py --epochs 6"),
}
# These seed themselves, and begin with another library than torch: they run as they are.
AS_THEY_ARE = ("diffusers LoRA", "trl SFT", "trl DPO", "trl reward", "trl KTO", "speech, CTC", "language model")
SEEDED = "import random, runpy, sys, numpy, torch; random.seed(0); numpy.random.seed(0); torch.manual_seed(0); " \
         "sys.argv = sys.argv[1:]; sys.path[0] = ''; runpy.run_path(sys.argv[0], run_name='__main__')"


class Scripts:
    def __init__(self, asked):
        self._program, self._python = str(pathlib.Path(asked.program).resolve()), asked.python
        self._folder = pathlib.Path(asked.folder).resolve()
        self._environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(self._folder / "inputs/hub"),
                             "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1",
                             "PYTHONPATH": str(self._folder / "minGPT")}

    def prepare(self):
        clone(self._folder, COMMITS)
        if not (self._folder / "inputs").exists():
            subprocess.run([self._python, HERE / "public_inputs.py", self._folder], check=True)

    def run(self, script, *before, dry=False):
        """What the script printed, and its status."""
        folder, arguments = SCRIPTS[script]
        words = words_of(self._folder, arguments, dry)
        begin = [] if script in AS_THEY_ARE else ["-c", SEEDED]
        return subprocess.run([*before, self._python, *begin, *words], cwd=self._folder / folder, env=self._environment,
                              capture_output=True, text=True, timeout=LIMIT_S)

    def tidepool(self, *arguments):
        return subprocess.run([self._program, *map(str, arguments)], capture_output=True, text=True, timeout=LIMIT_S)

    def ops(self, trace):
        return json.loads(self.tidepool("info", "--json", trace).stdout)["ops"] if trace.exists() else "none"

    def plan(self, trace, plan):
        for capacity in CAPACITIES:
            self.tidepool("simulate", trace, "--policy", "tide", "--capacity", capacity, "--machine", "a100-pcie4", "--first",
                          "--plan-out", plan)
            if plan.exists():
                return capacity
        return "none"

    def row(self, script):
        results = self._folder / "results" / script.replace(" ", "_")
        shutil.rmtree(results, ignore_errors=True)
        results.mkdir(parents=True)
        live, dry, plan = results / "live.tide", results / "dry.tide", results / "run.plan"
        alone = self.run(script)
        if alone.returncode != 0:
            return ["failed alone: " + alone.stderr.strip().splitlines()[-1]]
        numbers = losses(alone)
        recorded = self.run(script, self._program, "record", "--torch", "--no-gpu", "-o", live, "--")
        self.run(script, self._program, "record", "--dry", "--torch", "--device", "rtx-3090", "-o", dry, "--", dry=True)
        cells = [len(numbers), equal(losses(recorded), numbers), self.ops(live), self.ops(dry), self.plan(live, plan)]
        if not plan.exists():
            return [*cells, "", "", "", ""]
        run = self.run(script, self._program, "run", "--json", "--plan", plan, "--trace", live, "--")
        (results / "run.txt").write_text(run.stdout + run.stderr)
        report = json.loads((run.stdout.splitlines() or ["{}"])[-1])
        mib = [f"{report.get(key, 0) / 2**20:.2f}" for key in ("measured_peak_bytes", "predicted_peak_bytes")]
        return [*cells, f"{report.get('measured', 0)} of {report.get('iterations', 0)}", *mib, equal(losses(run), numbers)]


def clone(folder, commits):
    """Each repository, at its commit, in a folder of its name."""
    for repository, commit in commits.items():
        there = folder / repository.split("/")[1]
        if not there.exists():
            subprocess.run(["git", "clone", "-q", f"https://github.com/{repository}", there], check=True)
            subprocess.run(["git", "-C", there, "checkout", "-q", commit], check=True)


def words_of(folder, arguments, dry):
    """The arguments of a script, whose folder for output is empty then."""
    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    arguments = re.sub(r"\(([^|)]*)\|([^)]*)\)", r"\2" if dry else r"\1", arguments)
    return [word.replace("{in}", str(folder / "inputs")).replace("{out}", str(out)) for word in arguments.split()]


def losses(result):
    """The numbers that a script prints behind words as loss, without times."""
    text = re.sub(r"[\d.]+\s*(s/it|it/s|ms|s)\b", "", result.stdout + result.stderr)
    found = re.findall(r"(?i)(?:loss|ppl|acc)\w*[^\d\n]{0,12}(-?\d+\.\d+(?:e-?\d+)?)", text)
    return sorted(set(found))  # a progress bar is printed as often as the time allows


def equal(found, wanted):
    return "equal" if found == wanted else "differ"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scripts", nargs="*", help=f"default: all of {', '.join(SCRIPTS)}")
    parser.add_argument("--folder", required=True)
    parser.add_argument("--program", default="build/tidepool")
    parser.add_argument("--python", default=sys.executable)
    asked = parser.parse_args()
    scripts = Scripts(asked)
    scripts.prepare()
    titles = ["script", "numbers", "recorded", "ops live", "ops dry", "capacity", "steps measured", "peak, MiB", "promised, MiB",
              "under the plan"]
    print("| " + " | ".join(titles) + " |\n|" + "---|" * len(titles))
    for script in asked.scripts or SCRIPTS:
        print(f"| {script} | " + " | ".join(map(str, scripts.row(script))) + " |", flush=True)


if __name__ == "__main__":
    main()
