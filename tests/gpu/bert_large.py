"""BERT-Large, predicting the tokens of sequences of 512."""

import training
import transformers

options = training.arguments(batch=8)
config = transformers.BertConfig(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096)
length = 512
if options.small:
    config = transformers.BertConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128)
    length = 32
training.train(options, transformers.BertForMaskedLM(config), training.tokens(config.vocab_size, length),
               lambda model, batch: model(input_ids=batch, labels=batch).loss)
