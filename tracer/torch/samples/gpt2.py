"""GPT-2 (small), batch of 8 x 1024 tokens, AdamW. Usage: python gpt2.py OUT.jsonl"""

import sys

import torch
from transformers import AttentionInterface, GPT2Config, GPT2LMHeadModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward

import tidepool_torch

# Attention gets the flag "causal" and no mask, so that the fused kernel runs as on a GPU. With fake tensors,
# transformers cannot see that no row holds several packed texts, and would make a mask of every pair of tokens.
AttentionInterface.register("causal", sdpa_attention_forward)
config = GPT2Config(attn_implementation="causal", use_cache=False)
with tidepool_torch.fake_tensors():
    model = GPT2LMHeadModel(config)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, foreach=True)
    tokens = torch.randint(0, config.vocab_size, (8, 1024))

    def step():
        model(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    name = "gpt2, batch 8 of 1024 tokens"
    recorder = tidepool_torch.record_steps(step, model, optimizer, device="a100", name=name)
recorder.save(sys.argv[1])
