"""Rewrites of the IR: one file for each pass, Module in, Module out. See README.md."""

from lmc.passes.base import FunctionPass, Pass, PassContext, PassManager, PassResult, PassTiming, Remark
from lmc.passes.pipelines import PASSES, parse_pipeline, pipeline

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
