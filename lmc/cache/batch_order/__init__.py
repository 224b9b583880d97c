"""The order of a batch: depth-first over its prompts, in blocks, and the choice between layouts."""
