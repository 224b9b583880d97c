"""The local engine. Importing this package loads torch and transformers; `import lmc` never does."""

from lmc.runtime.local.engine import LocalEngine
from lmc.runtime.local.loading import load_local_engine

__all__ = ["LocalEngine", "load_local_engine"]
