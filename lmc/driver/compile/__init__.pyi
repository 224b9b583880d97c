# Modules that lmc.driver hands on; each loads on its first use.
from . import compiled as compiled
