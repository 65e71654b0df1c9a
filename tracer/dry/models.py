#!/usr/bin/env python3
"""Records three training steps of each model with `tidepool record --dry`, and prints a table.

A row has the number of launches and library calls, PyTorch's own peak and reserved memory, whether the trace's ideal
peak equals PyTorch's, and how many addresses and segments of PyTorch's memory history the model of its allocator
predicts. Needs a PyTorch for CUDA, torchvision and transformers; no GPU.

    tracer/dry/models.py --program build/tidepool [MODEL...]
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

MIB = 2**20


def image_model(name, batch=32):
    def make(torch):
        import torchvision
        model = getattr(torchvision.models, name)().cuda()
        images, labels = torch.randn(batch, 3, 224, 224, device="cuda"), torch.zeros(batch, dtype=torch.long, device="cuda")
        return model, lambda: torch.nn.functional.cross_entropy(model(images), labels)

    return make


def language_model(kind, dtype="float32", **settings):
    def make(torch):
        import transformers
        config = getattr(transformers, f"{kind}Config")(**settings)
        head = {"Bert": "BertForMaskedLM", "GPT2": "GPT2LMHeadModel"}[kind]
        model = getattr(transformers, head)._from_config(config, dtype=getattr(torch, dtype)).cuda()
        tokens = torch.zeros(8, 512, dtype=torch.long, device="cuda")
        return model, lambda: model(tokens, labels=tokens).loss

    return make


def lstm(torch):
    model = torch.nn.LSTM(512, 512, num_layers=2, bidirectional=True, batch_first=True).cuda()
    words = torch.randn(64, 128, 512, device="cuda")
    return model, lambda: model(words)[0].square().mean()


MODELS = {
    "resnet18": image_model("resnet18"), "resnet50": image_model("resnet50"), "vgg16": image_model("vgg16"),
    "densenet121": image_model("densenet121"), "efficientnet_b0": image_model("efficientnet_b0"),
    "swin_t": image_model("swin_t"), "vit_b_16": image_model("vit_b_16"), "bert": language_model("Bert"),
    "gpt2": language_model("GPT2"), "gpt2_eager": language_model("GPT2", attn_implementation="eager"),
    "gpt2_bf16": language_model("GPT2", dtype="bfloat16"), "lstm": lstm,
}


def train(name, folder):
    """Trains three steps, inside the dry run. Writes the memory history and PyTorch's own figures to the folder."""
    import torch

    torch.cuda.memory._record_memory_history(stacks="python")
    model, loss = MODELS[name](torch)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        loss().backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.memory._dump_snapshot(f"{folder}/history.pickle")
    said = {"peak": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved()}
    pathlib.Path(folder, "memory.json").write_text(json.dumps(said))


def row(program, name):
    """Runs one model and returns its row; if the run failed, a row with the last line that it wrote to stderr."""
    def answer(*arguments):
        printed = subprocess.run([program, *arguments, "--json"], check=True, capture_output=True, text=True).stdout
        return json.loads(printed.splitlines()[-1])

    with tempfile.TemporaryDirectory() as folder:
        ran = subprocess.run([program, "record", "--dry", "-o", f"{folder}/run.tide", "--", sys.executable, __file__,
                              "--train", name, "--folder", folder], capture_output=True, text=True)
        if not pathlib.Path(folder, "memory.json").exists():
            return f"| {name} | {(ran.stderr.strip().splitlines() or ['nothing said'])[-1]} |"
        said = json.loads(pathlib.Path(folder, "memory.json").read_text())
        info, audit = answer("info", f"{folder}/run.tide"), answer("audit", f"{folder}/history.pickle", "--pool", "pytorch")
        same = "equal" if info["ideal_peak_bytes"] == said["peak"] else f"{info['ideal_peak_bytes'] - said['peak']:+d} B"
        return (f"| {name} | {info['kernels']} | {said['peak'] / MIB:,.0f} MiB | {same} | {said['reserved'] / MIB:,.0f} MiB | "
                f"{audit['matched']}/{audit['allocations']} | {audit['segment_matched']}/{audit['segment_allocations']} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", choices=[*MODELS, []], metavar="MODEL")
    parser.add_argument("--program", default="build/tidepool")
    parser.add_argument("--train", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.train:
        return train(asked.train, asked.folder)
    print("| model | ops | peak | the trace's | reserved | audit: addresses | segments |\n|---|---|---|---|---|---|---|")
    for name in asked.models or MODELS:
        print(row(str(pathlib.Path(asked.program).resolve()), name), flush=True)


if __name__ == "__main__":
    main()
