# Modules that lmc.driver hands on; each loads on its first use.
from . import (
    api_server as api_server,
    grammar as grammar,
    opt as opt,
    schedule as schedule,
    serve as serve,
    simulate as simulate,
    view as view,
)
