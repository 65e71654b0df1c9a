"""BERT-large, masked language model, batch of 8 x 512 tokens, AdamW. Usage: python bert_large.py OUT.jsonl"""

import sys

import torch
from transformers import BertConfig, BertForMaskedLM

import tidepool_torch

config = BertConfig(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096)
with tidepool_torch.fake_tensors():
    model = BertForMaskedLM(config)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=True)
    tokens = torch.randint(0, config.vocab_size, (8, 512))
    labels = torch.randint(0, config.vocab_size, (8, 512))

    def step():
        model(input_ids=tokens, labels=labels).loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    name = "bert_large, batch 8 of 512 tokens"
    recorder = tidepool_torch.record_steps(step, model, optimizer, device="a100", name=name)
recorder.save(sys.argv[1])
