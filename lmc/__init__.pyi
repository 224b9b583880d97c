# The public names of lmc. `import lmc` loads the module of each on its first use.
from .cost.budget import Budget as Budget
from .driver.compile.compiled import Compiled as Compiled
from .driver.targets.engines import close as close, engines as engines
from .driver.targets.hosted import remote as remote
from .driver.run.result import Result as Result
from .driver.runner import BatchInterruptedError as BatchInterruptedError
from .driver.run.stream import AsyncStream as AsyncStream, Stream as Stream
from .driver.version import __version__ as __version__
from .frontend.program.forms import cond as cond, map as map, race as race, while_loop as while_loop
from .frontend.language.messages import (
    assistant as assistant,
    gen as gen,
    message as message,
    select as select,
    system as system,
    user as user,
)
from .frontend.language.sections import section as section
from .frontend.language.state import State as State
from .frontend.tools.tools import tool as tool
from .ir.errors import (
    BudgetError as BudgetError,
    CaptureError as CaptureError,
    ConstraintError as ConstraintError,
    ContextLengthError as ContextLengthError,
    EngineError as EngineError,
    InputError as InputError,
    LmcError as LmcError,
    LoweringError as LoweringError,
    RequestCancelledError as RequestCancelledError,
    RequestTimeoutError as RequestTimeoutError,
    ToolTimeoutError as ToolTimeoutError,
)
from .ir.profile import Profile as Profile
from .ir.usage import Usage as Usage
from .program import Program as Program, jit as jit
from .library import call_tools as call_tools, describe_tools as describe_tools
from .runtime.events import TokenEvent as TokenEvent
from .runtime.journal.journal import Resumption as Resumption
