"""Rewrites of the IR: one file for each pass, Module in, Module out. See README.md."""

from lmc.passes.base import FunctionPass, Pass, PassContext, Remark
from lmc.passes.manager import PassManager, PassResult, PassTiming
from lmc.passes.pipelines import parse_pipeline, pipeline
from lmc.passes.registry import PASSES

__all__ = [
    "PASSES",
    "FunctionPass",
    "Pass",
    "PassContext",
    "PassManager",
    "PassResult",
    "PassTiming",
    "Remark",
    "parse_pipeline",
    "pipeline",
]
