"""A Llama with LoRA of peft in a loop of accelerate, bf16. The change in a file given as argument is applied."""
import runpy
import sys

import torch
from accelerate import Accelerator
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM, get_linear_schedule_with_warmup


def main():
    accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=2)
    model = LlamaForCausalLM(LlamaConfig(hidden_size=512, intermediate_size=1376, num_hidden_layers=8, vocab_size=8000,
                                         num_attention_heads=8, num_key_value_heads=4, use_cache=False))
    model = get_peft_model(model, LoraConfig(r=8, target_modules=["q_proj", "v_proj"], lora_dropout=0.1))
    if len(sys.argv) > 1:
        runpy.run_path(sys.argv[1])["apply"](model)
    optimizer = torch.optim.AdamW([parameter for parameter in model.parameters() if parameter.requires_grad], lr=1e-4)
    tokens = torch.randint(0, 8000, (48, 512))
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(tokens), batch_size=8, shuffle=True)
    schedule = get_linear_schedule_with_warmup(optimizer, 2, 100)
    model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
    model.train()
    for batch, in loader:
        with accelerator.accumulate(model):
            loss = model(input_ids=batch, labels=batch).loss
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
    print("peak", torch.cuda.max_memory_allocated())


if __name__ == "__main__":
    main()
