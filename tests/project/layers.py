"""The layers of lmc as a table, and the import statements of a source file.

In one line: leaves ◄ frontend, passes, backend, runtime ◄ driver ◄ jit surface and command line.
"""

import ast
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import networkx

REPOSITORY = Path(__file__).resolve().parents[2]

LEAVES = frozenset({"lmc.ir", "lmc.grammar", "lmc.cache", "lmc.cost"})

# Package → packages and modules it may import; itself it always may. The longest name that holds a module decides.
LAYERS: dict[str, frozenset[str]] = {
    "lmc.ir": frozenset(),
    "lmc.toolchain": frozenset(),
    "lmc.grammar": frozenset(
        {"lmc.ir.cached", "lmc.ir.errors", "lmc.ir.engine.forks", "lmc.ir.wording", "lmc.toolchain"}
    ),  # no IR
    "lmc.cache": frozenset({"lmc.ir.errors"}),
    "lmc.cost": frozenset({"lmc.ir"}),
    "lmc.builtin_model": frozenset(),
    "lmc.frontend": frozenset({"lmc.ir", "lmc.grammar.classes"}),  # what a class says has one reading
    "lmc.frontend.sglang": frozenset({"lmc.sglang"}),  # the former import path
    "lmc.sglang": frozenset({"lmc.driver", "lmc.frontend", "lmc.ir"}),
    "lmc.library": frozenset({"lmc.frontend", "lmc.ir"}),
    "lmc.passes": frozenset({"lmc.ir", "lmc.grammar"}),
    "lmc.backend": LEAVES,
    "lmc.runtime": LEAVES | {"lmc.backend.plan", "lmc.runtime.kernels"},
    "lmc.runtime.kernels": frozenset({"lmc.toolchain"}),
    "lmc.report": LEAVES | {"lmc.backend.plan"},
    "lmc.driver": LEAVES
    | {"lmc.frontend", "lmc.passes", "lmc.backend", "lmc.report", "lmc.runtime", "lmc.builtin_model", "lmc.toolchain"},
    "lmc.program": frozenset(
        {
            "lmc.cost",
            "lmc.driver",
            "lmc.frontend.language.state",
            "lmc.ir.cached",
            "lmc.ir.errors",
            "lmc.ir.engine.forks",
        }
    ),
    "lmc.cli": frozenset({"lmc.driver", "lmc.ir.wording"}),
    "lmc.__init__.pyi": frozenset(
        {"lmc.cost", "lmc.driver", "lmc.frontend", "lmc.ir", "lmc.library", "lmc.program", "lmc.runtime"}
    ),
}

# Package → its rooms (folders), lowest first: a room may import the rooms before it.
ROOMS: dict[str, tuple[str, ...]] = {
    "lmc.frontend": (
        "source",
        "schemas",
        "language",
        "tools",
        "heap",
        "program",
        "machine",
        "emit",
        "control",
        "python",
        "continuation",
        "handles",
        "interpret",
    ),
    "lmc.ir": ("tokens", "engine", "builtins", "dialects", "analysis", "verify", "text", "semantics"),
    "lmc.grammar": ("native", "automata", "vocabulary", "index", "regex", "schema", "context_free", "classes"),
    "lmc.grammar.schema": ("documents", "shapes"),
    "lmc.cache": ("batch_order", "simulation"),
    "lmc.passes": ("analysis", "canonicalize"),
    "lmc.backend": ("json", "schedule"),
    "lmc.report": ("analysis", "forms", "cost"),
    "lmc.driver": ("targets", "compile", "run", "batch", "saved", "commands", "viewing"),
    "lmc.cli": ("results", "commands"),
    "lmc.runtime": ("hints", "kernels", "local", "remote", "budget", "journal", "server"),
    "lmc.runtime.kernels": ("native",),
    "lmc.runtime.local": ("modules", "sampling"),
}

# Parts that load torch: reached only through the registry of the driver, never by an import statement from outside.
TORCH_PARTS = frozenset({"lmc.runtime.local", "lmc.runtime.kernels"})
REGISTRY = "lmc.driver.targets.registry"

# Third-party packages by import name and by who may use them.
BASE_PACKAGES = frozenset(
    {
        "huggingface_hub",
        "jinja2",
        "lark",
        "lazy_loader",
        "networkx",
        "numpy",
        "pydantic",
        "pydantic_core",
        "rich",
        "stamina",
        "tokenizers",
        "typer",
        "typing_extensions",
    }
)
GRAMMAR_PACKAGES = frozenset({"llguidance"})  # in the base installation, for one package
PRICE_PACKAGES = frozenset({"genai_prices"})  # in the base installation, for one package
LOCAL_PACKAGES = frozenset({"safetensors", "torch", "transformers"})
SERVER_PACKAGES = frozenset({"fastapi", "prometheus_client", "python_multipart", "starlette", "uvicorn"})
API_PACKAGES = frozenset({"anthropic", "anyio", "httpx2", "openai"})
GPU_PACKAGES = frozenset({"flashinfer", "triton"})
THIRD_PARTY: dict[str, frozenset[str]] = {
    "lmc": BASE_PACKAGES,
    "lmc.cost": BASE_PACKAGES | PRICE_PACKAGES,
    "lmc.grammar": BASE_PACKAGES | GRAMMAR_PACKAGES,
    "lmc.runtime.remote": BASE_PACKAGES | API_PACKAGES,
    "lmc.runtime.server": BASE_PACKAGES | SERVER_PACKAGES,
    "lmc.runtime.local": BASE_PACKAGES | LOCAL_PACKAGES,
    # numpy: the page numbers of a batch are laid out as index arrays on the host before they become a tensor.
    "lmc.runtime.kernels": GPU_PACKAGES | {"numpy", "torch"},
}

STUB = "__init__.pyi"

# Calls that import what a string names.
DYNAMIC_IMPORTS = frozenset({"import_module", "__import__", "run_module"})


@dataclass(frozen=True)
class Import:
    """One imported module name as a statement of `module` at `line` gives it."""

    module: str
    line: int
    target: str


def module_name(path: Path) -> str:
    """`lmc/ir/dialects/core_ops.py` → `lmc.ir.dialects.core_ops`; a package's `__init__.py` is the package."""
    parts = path.relative_to(REPOSITORY).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def sources() -> dict[str, str]:
    """Every module of lmc with its source text."""
    return {module_name(path): path.read_text("utf-8") for path in sorted((REPOSITORY / "lmc").rglob("*.py"))}


def exports() -> dict[str, str]:
    """The stub of every package whose names are imported on first use (lazy_loader), with absolute imports."""
    found: dict[str, str] = {}
    for path in sorted((REPOSITORY / "lmc").rglob("__init__.pyi")):
        package = module_name(path.with_suffix(".py"))
        source = path.read_text("utf-8").replace("from . import", f"from {package} import")
        found[f"{package}.{STUB}"] = source.replace("from .", f"from {package}.")
    return found


def imports(module: str, source: str, modules: frozenset[str]) -> list[Import]:
    """All imports of a module, wherever they stand: in functions and under TYPE_CHECKING too.

    `from a.b import c` names `a.b.c` where that is one of `modules`, else `a.b`.
    """
    return [
        Import(module, line, f"{target}.{name}" if f"{target}.{name}" in modules else target)
        for line, target, name in _imported(source)
    ]


@cache
def _imported(source: str) -> tuple[tuple[int, str, str], ...]:
    """Return line, module and name of each import; the name is empty for a module, and for a relative import."""
    found: list[tuple[int, str, str]] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            if node.level or node.module is None:
                found.append((node.lineno, "." * node.level + (node.module or ""), ""))
            else:
                found += [(node.lineno, node.module, alias.name) for alias in node.names]
    return tuple(found)


def within(name: str, package: str) -> bool:
    """Whether a dotted name is a package or lies in it."""
    return name == package or name.startswith(package + ".")


def owner(name: str, table: dict[str, frozenset[str]]) -> str | None:
    """The row of a table that decides about a module: the longest one that holds it."""
    return max((row for row in table if within(name, row)), key=len, default=None)


def layer_violations(modules: dict[str, str]) -> list[str]:
    """Imports inside lmc that no arrow of the table allows."""
    names = frozenset(modules)
    problems: list[str] = []
    for module, source in modules.items():
        row = owner(module, LAYERS)
        for item in imports(module, source, names):
            if item.target.startswith("."):
                problems.append(f"{module}:{item.line}: relative import")
                continue
            target_row = owner(item.target, LAYERS)
            if row is None or target_row == row or not within(item.target, "lmc"):
                continue
            if item.target == "lmc" or not any(within(item.target, allowed) for allowed in LAYERS[row]):
                problems.append(f"{module}:{item.line}: {row} may not import {item.target}")
    return problems


def room_violations(modules: dict[str, str]) -> list[str]:
    """Imports of a room of ``ROOMS`` that the order of the rooms does not allow, and rooms that have no place in it."""
    names = frozenset(modules)
    problems: list[str] = []
    for package, rooms in ROOMS.items():
        rank = {f"{package}.{room}": number for number, room in enumerate(rooms)}
        inside = {module: source for module, source in modules.items() if within(module, package)}
        above = {module: room_of(module, package) for module in inside}
        folders = {
            room for room in above.values() if room != package and REPOSITORY.joinpath(*room.split(".")).is_dir()
        }
        problems += [f"{room}: not in the order of rooms" for room in sorted(folders ^ rank.keys())]
        graph: networkx.DiGraph[str] = networkx.DiGraph()
        for module, source in inside.items():
            for item in imports(module, source, names):
                if item.target in above and above[item.target] != above[module]:
                    graph.add_edge(above[module], above[item.target])
                    if rank.get(above[item.target], -1) > rank.get(above[module], len(rank)):
                        problems.append(f"{module}:{item.line}: {above[module]} may not import {item.target}")
        cycles = networkx.strongly_connected_components(graph)  # through modules that stand beside the rooms
        problems += [f"rooms import each other: {sorted(group)}" for group in cycles if len(group) > 1]
    return problems


def room_of(module: str, package: str) -> str:
    """Return the folder of ``package`` that holds a module, or the module itself if it stands beside the folders."""
    inner = module.removeprefix(f"{package}.").split(".")
    is_folder = REPOSITORY.joinpath(*package.split("."), inner[0]).is_dir()
    return f"{package}.{inner[0]}" if is_folder else module


def import_cycles(modules: dict[str, str]) -> list[list[str]]:
    """Return the groups of modules that import each other, directly or through others of the group."""
    names = frozenset(modules)
    graph: networkx.DiGraph[str] = networkx.DiGraph(
        (module, item.target)
        for module, source in modules.items()
        for item in imports(module, source, names)
        if item.target in names
    )
    return sorted(sorted(group) for group in networkx.strongly_connected_components(graph) if len(group) > 1)


def deep_classes(modules: dict[str, str], most: int) -> list[str]:
    """Return the classes that have more than ``most`` classes of lmc above each other, themselves included."""
    found: dict[str, tuple[ast.ClassDef, dict[str, str]]] = {}
    for module, source in modules.items():
        tree = ast.parse(source)
        imported = {
            alias.asname or alias.name: f"{node.module}.{alias.name}"
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
        names = {**imported, **{node.name: f"{module}.{node.name}" for node in classes}}
        found.update({f"{module}.{node.name}": (node, names) for node in classes})

    def depth(name: str) -> int:
        node, names = found[name]
        bases = [base.value if isinstance(base, ast.Subscript) else base for base in node.bases]
        above = [names.get(base.id, "") for base in bases if isinstance(base, ast.Name)]
        return 1 + max((depth(base) for base in above if base in found and base != name), default=0)

    return sorted(name for name in found if depth(name) > most)


def torch_part_violations(modules: dict[str, str]) -> list[str]:
    """Import statements that reach a torch part from outside it, past the registry."""
    names = frozenset(modules)
    return [
        f"{item.module}:{item.line}: {item.target} is reached only through {REGISTRY}"
        for module, source in modules.items()
        for item in imports(module, source, names)
        for part in TORCH_PARTS
        if within(item.target, part) and not any(within(module, own) for own in TORCH_PARTS)
    ]


def third_party_violations(modules: dict[str, str]) -> list[str]:
    """Imports of packages that are not declared, or not for this part of lmc."""
    problems: list[str] = []
    for module, source in modules.items():
        row = owner(module, THIRD_PARTY)
        allowed = THIRD_PARTY[row] if row else BASE_PACKAGES
        for item in imports(module, source, frozenset()):
            root = item.target.partition(".")[0]
            if root and root not in sys.stdlib_module_names and root != "lmc" and root not in allowed:
                problems.append(f"{module}:{item.line}: {root} is not for {row}")
    return problems


def dynamic_import_violations(modules: dict[str, str]) -> list[str]:
    """Imports by string outside the registry."""
    problems: list[str] = []
    for module, source in modules.items():
        if module == REGISTRY:
            continue
        for node in ast.walk(ast.parse(source)):
            name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None
            if isinstance(node, ast.alias):
                name = node.name
            if name in DYNAMIC_IMPORTS:
                problems.append(f"{module}:{getattr(node, 'lineno', 0)}: {name} outside {REGISTRY}")
    return problems
