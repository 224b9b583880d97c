# The names of the driver that its clients use. lmc.driver loads the module of each on its first use.
from .commands import (
    calibrate as calibrate,
    cost as cost,
    grammar as grammar,
    journal as journal,
    opt as opt,
    schedule as schedule,
    serve as serve,
    simulate as simulate,
    target_facts as target_facts,
)
from .viewing import view as view, view_server as view_server
from .compile import compiled as compiled
from .saved import artifacts as artifacts
from .batch.batch_rows import batch_arguments as batch_arguments
from .compile.compile import Variants as Variants
from .compile.compiled import Compiled as Compiled
from .targets.defaults import DEFAULT_BACKEND as DEFAULT_BACKEND
from .targets.defaults import (
    Target as Target,
    is_defined as is_defined,
    near_defined as near_defined,
    target_of_run as target_of_run,
)
from .targets.hosted import remote as remote
from .targets.engines import (
    adopt_engine as adopt_engine,
    close_engine as close_engine,
    engine_info as engine_info,
    flush_cache as flush_cache,
)
from .errors import (
    InputError as InputError,
    LmcError as LmcError,
    ProgramImportError as ProgramImportError,
    UsageError as UsageError,
)
from .run.execute import TokenEvent as TokenEvent
from .commands.cli_options import (
    GivenOptions as GivenOptions,
    options_for_saved as options_for_saved,
    runner_for as runner_for,
)
from .batch.lines import STANDARD_INPUT as STANDARD_INPUT
from .notebook import program_html as program_html
from .options import (
    OPTIONS as OPTIONS,
    Options as Options,
    RemoteTarget as RemoteTarget,
    check_option_names as check_option_names,
)
from .batch.chunks import parts_of as parts_of
from .profiles import ProfileFile as ProfileFile, ProfileOption as ProfileOption, read_profile as read_profile
from .programs import JittedFunction as JittedFunction, load_program as load_program, program_file as program_file
from .run.result import (
    Profile as Profile,
    Result as Result,
    Usage as Usage,
    describe_error as describe_error,
    result_row as result_row,
)
from .batch.rows import ArgumentReader as ArgumentReader, Row as Row, Signature as Signature, count_rows as count_rows
from .runner import BatchInterruptedError as BatchInterruptedError, Layout as Layout, Runner as Runner
from .run.money import Budget as Budget, CostTotal as CostTotal, budget_line as budget_line
from .run.journals import is_blocked as is_blocked, resumed_lines as resumed_lines
from .batch.run_journal import (
    JOURNAL_SUFFIX as JOURNAL_SUFFIX,
    RunJournal as RunJournal,
    Resumption as Resumption,
    begin_journal as begin_journal,
    continues as continues,
    journals_by_default as journals_by_default,
    open_journal as open_journal,
    replay_journal as replay_journal,
    replayed_target as replayed_target,
)
from .batch.run_record import MAX_RECORD_BYTES as MAX_RECORD_BYTES, RunRecord as RunRecord, record_run as record_run
from .batch.timeline import TimelineFile as TimelineFile, timeline_header as timeline_header
from .saved.saved import SavedRunner as SavedRunner, is_saved as is_saved
from .run.start import Arguments as Arguments
from .run.stream import AsyncStream as AsyncStream, Stream as Stream
from .version import __version__ as __version__
from .batch.windows import Part as Part, WindowedRun as WindowedRun
