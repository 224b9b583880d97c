"""The driver: the one place that knows all stages. Command line and ``@lmc.jit`` are its clients (see README.md)."""

from lmc.cache.ranks import Layout
from lmc.driver import artifacts, schedule
from lmc.driver.batch_rows import batch_arguments
from lmc.driver.compile import Compiled, Variants
from lmc.driver.defaults import DEFAULT_BACKEND, Wish
from lmc.driver.engines import adopt_engine, close_engine, engine_info, flush_cache
from lmc.driver.given import Given
from lmc.driver.lines import STANDARD_INPUT
from lmc.driver.parts import parts_of
from lmc.driver.profiles import ProfileFile, ProfileOption, read_profile
from lmc.driver.programs import ProgramImportError, UsageError, load_program, program_file
from lmc.driver.result import Result, describe_error, result_row
from lmc.driver.rows import ArgumentReader, Row, Signature, count_rows
from lmc.driver.run import BatchInterruptedError, Runner
from lmc.driver.run_record import MAX_RECORD_BYTES, RunRecord, record_run
from lmc.driver.saved import SavedRunner, is_saved
from lmc.driver.start import Arguments, Options, check_option_names
from lmc.driver.stream import AsyncStream, Stream
from lmc.driver.version import version
from lmc.driver.windows import Part, WindowedRun
from lmc.frontend.function import JittedFunction
from lmc.ir.errors import InputError, LmcError
from lmc.ir.profile import Profile, Usage
from lmc.runtime.events import TokenEvent

__all__ = [
    "DEFAULT_BACKEND",
    "MAX_RECORD_BYTES",
    "STANDARD_INPUT",
    "ArgumentReader",
    "Arguments",
    "AsyncStream",
    "BatchInterruptedError",
    "Compiled",
    "Given",
    "InputError",
    "JittedFunction",
    "Layout",
    "LmcError",
    "Options",
    "Part",
    "Profile",
    "ProfileFile",
    "ProfileOption",
    "ProgramImportError",
    "Result",
    "Row",
    "RunRecord",
    "Runner",
    "SavedRunner",
    "Signature",
    "Stream",
    "TokenEvent",
    "Usage",
    "UsageError",
    "Variants",
    "WindowedRun",
    "Wish",
    "adopt_engine",
    "artifacts",
    "batch_arguments",
    "check_option_names",
    "close_engine",
    "count_rows",
    "describe_error",
    "engine_info",
    "flush_cache",
    "is_saved",
    "load_program",
    "parts_of",
    "program_file",
    "read_profile",
    "record_run",
    "result_row",
    "schedule",
    "version",
]
