# Modules that lmc.driver hands on; each loads on its first use.
from . import view as view, view_server as view_server
