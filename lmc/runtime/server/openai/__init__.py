"""OpenAI's protocol: chat, completions, models."""
