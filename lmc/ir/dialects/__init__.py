"""The ops of the IR, one class each."""
