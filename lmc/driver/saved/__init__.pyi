# Modules that lmc.driver hands on; each loads on its first use.
from . import artifacts as artifacts
