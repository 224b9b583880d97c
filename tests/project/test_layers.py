"""The arrows between the packages of lmc, read from the import statements of every module."""

import graphlib
import re
from collections import Counter

import pytest

from tests.project import layers
from tests.project.layers import LAYERS, REPOSITORY, exports, owner, sources, within

MODULES = sources() | exports()


def test_no_import_goes_against_the_arrows():
    assert layers.layer_violations(MODULES) == []


def test_rooms_import_only_rooms_below_them():
    assert layers.room_violations(sources()) == []


@pytest.mark.parametrize(
    ("module", "source", "problem"),
    [
        ("lmc.frontend.heap.new", "import lmc.frontend.emit.new", "lmc.frontend.heap may not import"),
        ("lmc.frontend.source.new", "import lmc.frontend.capture", "rooms import each other"),
    ],
)
def test_an_import_against_the_order_of_rooms_is_found(module: str, source: str, problem: str):
    modules = sources() | {"lmc.frontend.emit.new": "", module: source}
    assert any(problem in found for found in layers.room_violations(modules))


def test_no_modules_import_each_other():
    assert layers.import_cycles(sources()) == []


def test_no_chain_of_classes_is_deep():
    assert layers.deep_classes(sources(), 3) == []


def test_a_deep_class_is_found_through_other_modules():
    modules = {
        "lmc.a": "class A: ...\nclass B(A): ...",
        "lmc.b": "from lmc.a import B as Base\nclass C(Base[int]): ...\nclass D(C): ...",
    }
    assert layers.deep_classes(modules, 3) == ["lmc.b.D"]
    assert layers.deep_classes(modules, 4) == []


def test_torch_parts_are_reached_only_through_the_registry():
    assert layers.torch_part_violations(MODULES) == []


def test_third_party_packages_are_declared_for_their_part():
    assert layers.third_party_violations(MODULES) == []


def test_only_the_registry_imports_by_name():
    assert layers.dynamic_import_violations(MODULES) == []


def test_every_package_has_a_row_and_a_readme():
    packages = {module.split(".")[1] for module in sources() if module.count(".") >= 1}
    assert {name for name in packages if owner(f"lmc.{name}", LAYERS) is None} == set()
    folders = {REPOSITORY / "lmc" / name for name in packages if (REPOSITORY / "lmc" / name).is_dir()}
    assert [folder.name for folder in sorted(folders) if not (folder / "README.md").is_file()] == []


def test_no_folder_has_more_than_fifteen_modules():
    folders = Counter(path.parent for path in (REPOSITORY / "lmc").rglob("*.py"))
    assert {folder.relative_to(REPOSITORY).as_posix(): count for folder, count in folders.items() if count > 15} == {}


def test_every_file_stands_in_the_map_of_a_readme():
    package = REPOSITORY / "lmc"
    unnamed: list[str] = []
    for path in sorted(package.rglob("*.py")):
        if path.name == "__init__.py" or path.parent == package:
            continue
        folders = [folder for folder in path.parents if package in folder.parents]
        readmes = [folder / "README.md" for folder in folders if (folder / "README.md").is_file()]
        maps = [re.findall(r"[\w/]+\.py", readme.read_text("utf-8")) for readme in readmes]
        if not any(name.rpartition("/")[2] == path.name for names in maps for name in names):
            unnamed.append(path.relative_to(REPOSITORY).as_posix())
    assert unnamed == []


def test_the_table_has_no_cycle():
    packages = {row: {owner(target, LAYERS) or target for target in allowed} for row, allowed in LAYERS.items()}
    assert graphlib.TopologicalSorter(packages).prepare() is None


@pytest.mark.parametrize(
    ("module", "source", "problem"),
    [
        ("lmc.grammar.fsm", "from lmc.ir.types import Text", "lmc.grammar may not import lmc.ir.types"),
        ("lmc.frontend.jit", "import lmc.passes.cse", "lmc.frontend may not import lmc.passes.cse"),
        ("lmc.runtime.executor", "from lmc.backend import lower", "lmc.runtime may not import lmc.backend"),
        (
            "lmc.runtime.kernels.attention",
            "from lmc.runtime.local import pool",
            "may not import lmc.runtime.local.pool",
        ),
        ("lmc.ir.module", "def f():\n    import lmc.driver", "lmc.ir may not import lmc.driver"),
        ("lmc.ir.module", "if TYPE_CHECKING:\n    import lmc.passes", "lmc.ir may not import lmc.passes"),
        ("lmc.ir.module", "import lmc", "lmc.ir may not import lmc"),
        ("lmc.ir.module", "from . import types", "relative import"),
        ("lmc.cli.main", "from lmc.passes import manager", "lmc.cli may not import lmc.passes"),
    ],
)
def test_a_wrong_arrow_is_found(module: str, source: str, problem: str):
    known = {"lmc.backend.schedule.schedule": "", "lmc.runtime.local.pool": "", module: source}
    [found] = layers.layer_violations(known)
    assert found.endswith(problem)
    assert found.startswith(f"{module}:{source.count(chr(10)) + 1}: ")


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("lmc.runtime.executor", "from lmc.backend.plan import Plan"),
        ("lmc.runtime.executor", "from lmc.backend import plan"),
        ("lmc.driver.compile.compile", "from lmc.passes import manager"),
        ("lmc.ir.module", "from lmc.ir.types import Text"),
    ],
)
def test_a_right_arrow_is_not_reported(module: str, source: str):
    assert layers.layer_violations({"lmc.backend.plan": "", module: source}) == []


def test_a_cycle_is_found_wherever_its_imports_stand():
    modules = {
        "lmc.a": "import lmc.b",
        "lmc.b": "if TYPE_CHECKING:\n    from lmc import c",
        "lmc.c": "def f():\n    from lmc.a import name",
        "lmc.d": "import lmc.a\nimport lmc.d.e",
        "lmc.d.e": "import lmc.c",
    }
    assert layers.import_cycles(modules) == [["lmc.a", "lmc.b", "lmc.c"]]


@pytest.mark.parametrize(
    "source", ["import torch", "def f():\n    from transformers import AutoModel", "import requests"]
)
@pytest.mark.parametrize("module", ["lmc.ir.module", "lmc.runtime.executor", "lmc.driver.targets.registry"])
def test_a_package_in_the_wrong_part_is_found(module: str, source: str):
    [found] = layers.third_party_violations({module: source})
    assert found.startswith(module)


def test_transformers_is_not_for_kernels():
    assert layers.third_party_violations({"lmc.runtime.kernels.norm": "import torch, triton"}) == []
    [found] = layers.third_party_violations({"lmc.runtime.kernels.norm": "import transformers"})
    assert found.endswith("transformers is not for lmc.runtime.kernels")


def test_a_way_around_the_registry_is_found():
    direct = {"lmc.driver.compile.compile": "from lmc.runtime.local import engine"}
    assert len(layers.torch_part_violations(direct)) == 1
    by_name = {"lmc.cli.commands.run": "import importlib\nimportlib.import_module('lmc.runtime.local')"}
    assert layers.dynamic_import_violations(by_name) == [
        "lmc.cli.commands.run:2: import_module outside lmc.driver.targets.registry"
    ]
    assert layers.dynamic_import_violations({"lmc.driver.targets.registry": by_name["lmc.cli.commands.run"]}) == []


def test_within_does_not_take_a_prefix_for_a_package():
    assert within("lmc.ir.dialects.core_ops", "lmc.ir")
    assert not within("lmc.irregular", "lmc.ir")
