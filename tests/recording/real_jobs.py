"""The jobs behind the snapshots of real_table.py, as their authors ran them: real_jobs.py JOB ARGUMENT...

Run in the folder of the job's code, with the PyTorch of its lock file. Weights are not initialised: their values do not
matter to memory, and drawing them takes minutes. Each job writes its snapshots itself.
"""

import importlib.metadata
import pathlib
import runpy
import sys

import torch

VOCABULARY, BATCH = 10_000, 4


def kkaitlyn111(precision, *contexts):
    """Runs the loop of one function in one process up to a given run, so that later runs find the segments of earlier ones.
    The versions of benchmark.py in its git history have both precisions.

    contexts  the last run: forward or fullstep, and the length of its context, as in ("fullstep", "128")
    """
    from cs336_systems import benchmark

    mixed = precision == "bf16"
    if not mixed:
        torch.set_float32_matmul_precision("high")
    last = (contexts[0] == "forward", int(contexts[1]))
    for forward_only in (True, False):
        for context in (128, 256, 512):
            benchmark.run_memory_foward_fullstep(
                **benchmark.get_model_config("2.7b"), context_length=context, batch_size=BATCH, vocab_size=VOCABULARY, theta=10_000,
                dtype=torch.bfloat16 if mixed else torch.float32, model_size="2.7b", mixed_precision=mixed,
                forward_only=forward_only)
            if (forward_only, context) == last:
                return


def wedsonlin(pattern, context, autocast):
    sys.argv[1:] = ["--vocab_size", str(VOCABULARY), "--context_length", context, "--d_model", "1024", "--d_ff", "4096",
                    "--num_layers", "24", "--num_heads", "16", "--model_name", "medium", "--warmup-steps", "5", "--execution-steps",
                    "10", "--autocast", autocast, "--memory-profiler", "pytorch", "--pattern", pattern]
    runpy.run_path("../cs336_systems/nsys_profile.py", run_name="__main__")


def athrun0109(precision, forward_only, context):
    """@param precision  replaces the bf16 that the last version of the script sets"""
    path = pathlib.Path("cs336_systems/benchmarking_script_memory.py")
    path.write_text(path.read_text().replace("args.mixed_precision = 'bf16'", f"args.mixed_precision = '{precision}'"))
    sys.argv[1:] = ["--context_length", context, "--forward_only", forward_only]
    runpy.run_path(str(path), run_name="__main__")


if __name__ == "__main__":
    importlib.metadata.version = lambda name: "not installed"  # the packages ask at their import
    torch.nn.init.trunc_normal_ = lambda tensor, *_, **__: tensor
    {job.__name__: job for job in (kkaitlyn111, wedsonlin, athrun0109)}[sys.argv[1]](*sys.argv[2:])
