"""A model like Llama (grouped queries, SwiGLU, RMSNorm; 16 layers, 0.5 G parameters) on sequences of 1024."""

import training
import transformers

options = training.arguments(batch=4)
config = transformers.LlamaConfig(hidden_size=1536, intermediate_size=4096, num_hidden_layers=16, num_attention_heads=16,
                                  num_key_value_heads=4, vocab_size=32000)
length = 1024
if options.small:
    config = transformers.LlamaConfig(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                                      num_key_value_heads=2, vocab_size=1000)
    length = 32
training.train(options, transformers.LlamaForCausalLM(config), training.tokens(config.vocab_size, length),
               lambda model, batch: model(input_ids=batch, labels=batch).loss)
