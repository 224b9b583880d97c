"""transformers' generate, all prompts in one padded batch."""

import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from lmc.driver.targets.openmp import SLEEPING_THREADS

os.environ |= SLEEPING_THREADS  # before torch loads

from benchmarks.peers.protocol import Generate, Job, serve


def load(job: Job) -> Generate:
    """Load the model."""
    import torch
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(job["threads"])
    model: Any = AutoModelForCausalLM.from_pretrained(job["model"], dtype=getattr(torch, job["dtype"])).eval()
    model = model.to(job.get("device", "cpu"))

    def generate(prompts: list[list[int]], new_tokens: int) -> list[list[int]]:
        longest = max(map(len, prompts))
        ids = torch.tensor([[0] * (longest - len(prompt)) + prompt for prompt in prompts], device=model.device)
        mask = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts])
        with torch.inference_mode():
            output = model.generate(
                ids,
                attention_mask=mask.to(model.device),
                min_new_tokens=new_tokens,
                max_new_tokens=new_tokens,
                do_sample=False,
                pad_token_id=0,
            )
        return output[:, longest:].tolist()

    return generate


if __name__ == "__main__":
    serve(load)
