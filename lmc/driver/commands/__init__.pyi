# Modules that lmc.driver hands on; each loads on its first use.
from . import (
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
