"""From logits to tokens: draws, masks of constraints, drafts of text that has to follow."""
