#!/usr/bin/env python3
"""Compares advised with recorded peaks of scripts that are changed as `tidepool advise` says.

    PYTHON tests/recording/advise_table.py [--capacity 0.6x,0.7x,0.8x] [--models gpt2,...] [--kinds checkpoint,...]
                                           [--all] [--device NAME] [--keep FOLDER]

Each model's training script is recorded dry and advised for each capacity. The code of the first change of each kind
(with --all, of every one) is applied to the same model, the script is recorded again, and PyTorch's own peak
(torch.cuda.max_memory_allocated) is compared with the advice. Six models are trained by a loop in this file, which can
divide its batch. Its first step, which makes the optimizer's state, does not count. The other models are scripts in
advise_scripts/, as users of transformers' Trainer, timm, Lightning, and peft with accelerate write them.
PYTHON has PyTorch for CUDA and these libraries; no GPU is needed. Ends with 1 if a difference is above --tolerance.
FOLDER, which has to be empty, keeps recordings and code.
"""
import argparse
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile

LIMIT_S = 3600  # of one command
STEPS = 3  # the hook sees modules from the second step on
SCRIPTS = pathlib.Path(__file__).resolve().parent / "advise_scripts"


def gpt2(torch):
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(n_layer=8, n_embd=512, n_head=8, use_cache=False))
    tokens = torch.randint(0, 50257, (4, 512))
    return model, tokens, lambda piece: model(input_ids=piece, labels=piece).loss


def llama(torch):
    from peft import LoraConfig, get_peft_model
    from transformers import LlamaConfig, LlamaForCausalLM

    shape = {"hidden_size": 512, "intermediate_size": 1376, "num_hidden_layers": 8, "num_attention_heads": 8}
    model = LlamaForCausalLM(LlamaConfig(**shape, num_key_value_heads=4, vocab_size=8000, use_cache=False))
    lora = LoraConfig(r=8, target_modules=["q_proj", "v_proj"], lora_dropout=0.1)
    model = get_peft_model(model, lora)
    tokens = torch.randint(0, 8000, (4, 512))
    return model, tokens, lambda piece: model(input_ids=piece, labels=piece).loss


def images(torch, model, batch, side):
    model = model.cuda()
    inputs, labels = torch.randn(batch, 3, side, side), torch.randint(0, 10, (batch,))
    return model, (inputs, labels), lambda piece: torch.nn.functional.cross_entropy(model(piece[0]), piece[1])


def resnet50(torch):
    import timm

    with torch.device("cpu"):  # the initialisation reads values
        model = timm.create_model("resnet50")
    return images(torch, model, 16, 224)


def vit(torch):
    import timm

    with torch.device("cpu"):
        model = timm.create_model("vit_small_patch16_224", drop_rate=0.1)
    return images(torch, model, 16, 224)


def encoder(torch):
    nn = torch.nn

    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(4000, 512)
            self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True), 6)
            self.head = nn.Linear(512, 4000)

        def forward(self, tokens):
            return self.head(self.encoder(self.embed(tokens)))

    model = Tagger()
    tokens = torch.randint(0, 4000, (8, 256))
    return model, tokens, lambda piece: nn.functional.cross_entropy(model(piece).flatten(0, 1), piece.flatten())


def cnn(torch):
    nn = torch.nn

    def block(inputs, outputs):
        return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(),
                             nn.Conv2d(outputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU())

    blocks = [block(3, 64), block(64, 64), block(64, 64), nn.MaxPool2d(4), block(64, 128), block(128, 128), nn.MaxPool2d(4)]
    model = nn.Sequential(*blocks, nn.Flatten(), nn.Linear(128 * 16, 1024), nn.ReLU(), nn.Dropout(0.5),
                          nn.Linear(1024, 10))
    return images(torch, model, 64, 64)


MODELS = {"gpt2": (gpt2, "transformers"), "llama": (llama, "transformers, peft"), "resnet50": (resnet50, "timm"),
          "vit": (vit, "timm"), "encoder": (encoder, "torch.nn"), "cnn": (cnn, "torch.nn")}
LIBRARIES = {name: library for name, (_, library) in MODELS.items()} | {
    "gpt2_trainer": "transformers' Trainer, bf16", "resnet50_timm": "timm, AMP, EMA",
    "vit_lightning": "Lightning, timm, bf16", "llama_accelerate": "peft, accelerate, bf16",
    "vit_accumulated": "timm, AMP, EMA, accumulation", "seq2seq": "torch.nn", "dcgan": "torch.nn, two models"}


def train(name, change):
    """Runs in the dry run. Prints the peak of all steps but the first, which makes the optimizer's state."""
    import torch

    with torch.device("cuda"):
        model, batch, loss = MODELS[name][0](torch)
    model.train()
    pieces = [batch]
    if change:
        spec = importlib.util.spec_from_file_location("change", change)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        if hasattr(module, "apply"):
            module.apply(model)
        if hasattr(module, "micro_batches"):
            pieces = module.micro_batches(batch)
    optimizer = torch.optim.AdamW([parameter for parameter in model.parameters() if parameter.requires_grad])
    for step in range(STEPS):
        if step == 1:
            torch.cuda.reset_peak_memory_stats()
        optimizer.zero_grad()
        for piece in pieces:
            (loss(piece) / len(pieces)).backward()
        optimizer.step()
    print("peak", torch.cuda.max_memory_allocated())


def record(arguments, name, trace, change=None):
    """Records a model's training script, with a change if one is given. @return PyTorch's own peak in bytes"""
    job, given = [sys.executable, str(SCRIPTS / f"{name}.py")], [str(change)] if change else []
    if name in MODELS:
        job, given = [sys.executable, str(pathlib.Path(__file__).resolve()), "--train", name], ["--change", str(change)] if change else []
    command = [arguments.program, "record", "--dry", "--torch", "--device", arguments.device, "-o", str(trace), "--"]
    ran = subprocess.run(command + job + given, capture_output=True, text=True, cwd=trace.parent, timeout=LIMIT_S)
    peaks = [line.split()[1] for line in ran.stdout.splitlines() if line.startswith("peak ")]
    if ran.returncode != 0 or not peaks:
        raise SystemExit(f"{name}: not recorded:\n{ran.stdout}{ran.stderr}")
    return int(peaks[0])


def advise(arguments, name, trace, capacity):
    kinds = [kind for kind in arguments.kinds.split(",") if kind != "batch" or name in MODELS]
    command = [arguments.program, "advise", str(trace), "--capacity", capacity, "--kinds", ",".join(kinds), "--json"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    if ran.returncode > 1:
        raise SystemExit(f"{trace}: {ran.stderr}")
    return json.loads(ran.stdout)


def mib(size):
    return f"{size / 2**20:,.0f} MiB"


def wanted(changes, every):
    """The first change of each kind, or every one."""
    first = {}
    for change in changes:
        first.setdefault(change["kind"], change)
    return changes if every else list(first.values())


def text_of(change):
    modules = change["modules"]
    if not modules:
        return f"{change['kind']} in {change['parts']} parts"
    listed = modules[0] if len(modules) == 1 else f"{len(modules)}: {modules[0]} to {modules[-1]}"
    kept = ", ".join(f"`{name}`" for name in change.get("operators", []))
    return f"{change['kind']} `{listed}`" + (f", keeping {kept}" if kept else "")


def rows_of(arguments, name, folder):
    """(cells, difference) of each change."""
    trace, tried = folder / f"{name}.tide", set()
    peak = record(arguments, name, trace)
    for capacity in arguments.capacity.split(","):
        said = advise(arguments, name, trace, capacity)
        if said["base_allocated_bytes"] != peak:
            print(f"{name}, {capacity}: PyTorch's peak is {peak}, in the trace {said['base_allocated_bytes']} in blocks, "
                  f"{said['base_peak_bytes']} in tensors", file=sys.stderr)
        for change in wanted(said["changes"], arguments.all):
            if change["code"] in tried:
                continue
            tried.add(change["code"])
            code = folder / f"{name}-{len(tried)}.py"
            code.write_text(change["code"])
            again = record(arguments, name, code.with_suffix(".tide"), code)
            advised = change["allocated_bytes"]
            difference = advised / again - 1
            yield [name, LIBRARIES[name], mib(peak), capacity + ("" if change["fits"] else " (not reached)"),
                   text_of(change), mib(advised), mib(again), f"{difference:+.2%}",
                   f"{change['overhead_ratio'] - 1:+.1%}"], abs(difference)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/tidepool")
    parser.add_argument("--capacity", default="0.6x,0.7x,0.8x")
    parser.add_argument("--models", default=",".join(LIBRARIES))
    parser.add_argument("--kinds", default="checkpoint,selective-checkpoint,offload", help="kinds of changes to try")
    parser.add_argument("--device", default="a100-80gb", help="the GPU that the dry run stands in for")
    parser.add_argument("--tolerance", type=float, default=0.02)
    parser.add_argument("--all", action="store_true", help="not only the first change of a kind for each capacity")
    parser.add_argument("--keep", help="folder for recordings and code")
    parser.add_argument("--train", help=argparse.SUPPRESS)
    parser.add_argument("--change", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.train:
        return train(arguments.train, arguments.change)
    arguments.program = str(pathlib.Path(arguments.program).resolve())
    print("| model | of | peak | capacity | change | advised peak | recorded again | difference | time |")
    print("|---|---|---|---|---|---|---|---|---|")
    differences = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(arguments.keep or scratch).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        for name in arguments.models.split(","):
            for cells, difference in rows_of(arguments, name, folder):
                print("| " + " | ".join(cells) + " |", flush=True)
                differences.append(difference)
    within = sum(difference <= arguments.tolerance for difference in differences)
    print(f"\n{within} of {len(differences)} changes within {arguments.tolerance:.0%}, the largest difference "
          f"{max(differences, default=0):.2%}.")
    return 0 if within == len(differences) else 1


if __name__ == "__main__":
    sys.exit(main())
