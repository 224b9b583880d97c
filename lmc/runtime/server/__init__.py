"""An engine over HTTP, under the protocols of OpenAI, Anthropic and SGLang."""
