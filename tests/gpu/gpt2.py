"""GPT-2 (small, 124 M) on sequences of 1024."""

import training
import transformers

options = training.arguments(batch=8)
config = transformers.GPT2Config()
length = 1024
if options.small:
    config = transformers.GPT2Config(n_embd=64, n_layer=2, n_head=4, vocab_size=1000)
    length = 32
training.train(options, transformers.GPT2LMHeadModel(config), training.tokens(config.vocab_size, length),
               lambda model, batch: model(input_ids=batch, labels=batch).loss)
