"""Functions that programs call, written like programs themselves. See README.md."""

from lmc.library.tool_calls import call_tools, describe_tools

__all__ = ["call_tools", "describe_tools"]
