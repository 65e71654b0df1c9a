"""Peaks of a compiled model under PyTorch's activation_memory_budget, one budget after the other:

    budget_peaks_job.py MODEL SCALE BACKEND BUDGET,BUDGET,...

Prints a JSON object for each: the items of the knapsack and how many of them it saves, the bytes that are resident
before the measured steps, and their peaks. The budget "eager" stands for no compilation. Models and steps are those of
github.com/siddddd17/ackaudit (experiments/measured_backward/run_d.py).
"""

import contextlib
import json
import sys
import unittest.mock

import torch
from torch._functorch import config, partitioners


STEPS = 5  # as in the measurements


class Total(torch.nn.Module):
    """The sum of a model's last hidden state."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids):
        return self.model(input_ids=ids).last_hidden_state.sum()


def model_of(name, scale):
    import transformers
    if name == "llama":
        shape = transformers.LlamaConfig(hidden_size=256, intermediate_size=688, num_hidden_layers=4 * scale,
                                         num_attention_heads=8, num_key_value_heads=8, vocab_size=1000, use_cache=False)
        return Total(transformers.LlamaModel(shape))
    shape = transformers.BertConfig(hidden_size=192, num_hidden_layers=4 * scale, num_attention_heads=3, intermediate_size=768,
                                    vocab_size=1000, max_position_embeddings=128 * scale)
    return Total(transformers.BertModel(shape, add_pooling_layer=False))


def one_sequence_in_a_row():
    """Replaces the function of transformers that finds rows with several sequences by their position ids. On the fake
    for a GPU all ids are zero. Without compilation, that function would find such rows, and a mask would be made for
    them."""
    from transformers import masking_utils
    return unittest.mock.patch.object(masking_utils, "find_packed_sequence_indices", lambda position_ids: None)


class Watched:
    """PyTorch's knapsack solver "dp", which also notes the numbers of items and of saved items."""

    items = saved = 0

    def __init__(self):
        self.solve = partitioners.dp_knapsack

    def __call__(self, memory, runtimes, most):
        answer = self.solve(memory, runtimes, most)
        Watched.items, Watched.saved = len(memory), len(answer[1])
        return answer


def measured(name, scale, budget, backend):
    """A model's peaks. The allocator's state depends on earlier allocations, also on those of an earlier call."""
    model = model_of(name, scale).to("cuda")
    ids = torch.randint(0, 1000, (2, 128 * scale)).to("cuda")
    Watched.items = Watched.saved = 0
    torch._dynamo.reset()
    torch.cuda.empty_cache()
    step = model
    if budget != "eager":
        config.activation_memory_budget = float(budget)
        step = torch.compile(model, backend=backend, dynamic=False)
    step(ids).backward()
    torch.cuda.synchronize()
    model.zero_grad(set_to_none=False)
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    found = {"budget": budget, "resident": torch.cuda.memory_allocated(), "peaks": []}
    for _ in range(STEPS):
        torch.cuda.reset_peak_memory_stats()
        step(ids).backward()
        torch.cuda.synchronize()
        found["peaks"].append(torch.cuda.max_memory_allocated())
        model.zero_grad(set_to_none=False)
    del model, ids
    torch.cuda.empty_cache()
    return {**found, "items": Watched.items, "saved": Watched.saved}


def main():
    name, scale, backend, budgets = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4].split(",")
    partitioners.dp_knapsack = Watched()
    for budget in budgets:
        with one_sequence_in_a_row() if budget == "eager" else contextlib.nullcontext():
            print(json.dumps(measured(name, scale, budget, backend)), flush=True)


if __name__ == "__main__":
    main()
