# The names that other packages use. lmc.grammar loads the module of each on its first use.
from .compiling import Source as Source, compile as compile, compile_source as compile_source
from .facts import Facts as Facts
from .constraint import Constraint as Constraint
from .vocabulary.vocabulary import Vocabulary as Vocabulary
