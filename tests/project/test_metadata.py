"""What pyproject.toml promises to users, and that constraints.txt pins it."""

import importlib.metadata
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.project.layers import (
    BASE_PACKAGES,
    GPU_PACKAGES,
    GRAMMAR_PACKAGES,
    LOCAL_PACKAGES,
    PRICE_PACKAGES,
    REPOSITORY,
)

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = {name: [Requirement(line) for line in lines] for name, lines in PROJECT["optional-dependencies"].items()}
BASE = [Requirement(line) for line in PROJECT["dependencies"]]
CONSTRAINTS = [
    Requirement(line)
    for line in (REPOSITORY / "constraints.txt").read_text("utf-8").splitlines()
    if line.strip() and not line.startswith("#")
]

PLATFORMS = {
    "linux-x86_64": {"sys_platform": "linux", "platform_system": "Linux", "platform_machine": "x86_64"},
    "linux-aarch64": {"sys_platform": "linux", "platform_system": "Linux", "platform_machine": "aarch64"},
    "macos-arm64": {"sys_platform": "darwin", "platform_system": "Darwin", "platform_machine": "arm64"},
}


def names(requirements: list[Requirement]) -> set[str]:
    return {canonicalize_name(requirement.name) for requirement in requirements}


def on(platform: str, requirements: list[Requirement]) -> list[Requirement]:
    """The requirements whose markers hold on a platform, under the oldest Python."""
    here = {**PLATFORMS[platform], "python_version": "3.11"}
    return [item for item in requirements if item.marker is None or item.marker.evaluate(here)]


def test_names_are_the_fixed_ones():
    assert PROJECT["name"] == "lmc-compiler"
    assert PROJECT["scripts"] == {"lmc": "lmc.cli:main"}
    assert PROJECT["requires-python"] == ">=3.11"
    assert PROJECT["license"] == "Apache-2.0"


def test_base_dependencies_hold_what_the_code_imports_and_no_torch():
    imported = (BASE_PACKAGES | GRAMMAR_PACKAGES | PRICE_PACKAGES) - {"pydantic_core"}
    assert names(BASE) == {canonicalize_name(name) for name in imported}
    assert not names(BASE) & {"torch", "transformers", "safetensors", "triton", "flashinfer-python"}


def test_extras_are_the_promised_ones():
    assert set(EXTRAS) == {"local", "gpu", "server", "api", "dev", "docs"}
    assert names(EXTRAS["local"]) == LOCAL_PACKAGES
    assert names(EXTRAS["gpu"]) == {"flashinfer-python", "triton"}
    assert {"flashinfer", "triton"} == GPU_PACKAGES
    assert {"fastapi", "uvicorn", "python-multipart", "prometheus-client"} <= names(EXTRAS["server"])
    assert names(EXTRAS["api"]) == {"openai", "anthropic"}
    assert {"pytest", "hypothesis", "ruff", "pyright", "filecheck", "lit", "pre-commit", "build"} <= names(
        EXTRAS["dev"]
    )


def test_classifiers_name_pythons_platforms_and_typing():
    for expected in (
        "Programming Language :: Python :: 3.11",
        "Operating System :: POSIX :: Linux",
        "Operating System :: MacOS :: MacOS X",
        "Typing :: Typed",
    ):
        assert expected in PROJECT["classifiers"]
    # The license expression replaced its classifier; installers refuse both.
    assert not [line for line in PROJECT["classifiers"] if line.startswith("License ::")]


def test_users_get_ranges_and_make_gets_exact_versions():
    for requirement in [*BASE, *(item for extra in EXTRAS.values() for item in extra)]:
        operators = {part.operator for part in requirement.specifier}
        assert operators, f"{requirement.name} has no lower bound"
        assert not operators & {"==", "==="}, f"{requirement.name} is pinned for users"
    for pin in CONSTRAINTS:
        assert [part.operator for part in pin.specifier] == ["=="], f"{pin.name} is not pinned exactly"
    assert len(names(CONSTRAINTS)) == len(CONSTRAINTS)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_every_direct_dependency_has_a_pin_in_its_range(platform: str):
    pins = {canonicalize_name(pin.name): next(iter(pin.specifier)).version for pin in on(platform, CONSTRAINTS)}
    wanted = on(platform, [*BASE, *(item for extra in EXTRAS.values() for item in extra)])
    assert {"torch", "tokenizers", "pytest"} <= names(wanted)
    for requirement in wanted:
        pin = pins.get(canonicalize_name(requirement.name))
        assert pin is not None, f"{requirement.name} has no pin on {platform}"
        assert pin in requirement.specifier, f"{requirement.name}=={pin} is outside {requirement.specifier}"


def test_kernels_for_nvidia_are_for_linux_only():
    assert on("macos-arm64", EXTRAS["gpu"]) == []
    assert {"triton", "flashinfer-python"}.isdisjoint(names(on("macos-arm64", CONSTRAINTS)))
    assert names(on("linux-x86_64", EXTRAS["gpu"])) == {"triton", "flashinfer-python"}


def test_the_torch_pin_fits_every_build_of_the_release():
    [torch] = [pin for pin in CONSTRAINTS if pin.name == "torch"]
    release = next(iter(torch.specifier)).version
    assert all(f"{release}{label}" in torch.specifier for label in ("", "+cpu", "+cu130"))
    assert not names(CONSTRAINTS) & {"torchvision", "torchaudio"}


def installed_closure(roots: list[Requirement]) -> set[str]:
    """Names of all installed distributions that the roots need on this machine."""
    found: set[str] = set()
    waiting = [(root.name, frozenset(root.extras)) for root in roots]
    while waiting:
        name, extras = waiting.pop()
        if canonicalize_name(name) in found:
            continue
        found.add(canonicalize_name(name))
        for line in importlib.metadata.distribution(name).requires or []:
            item = Requirement(line)
            if item.marker is None or any(item.marker.evaluate({"extra": extra}) for extra in extras | {""}):
                waiting.append((item.name, frozenset(item.extras)))
    return found


@pytest.mark.parametrize("extra", ["dev", "docs"])
def test_what_comes_along_is_pinned_too(extra: str):
    if extra == "docs":
        pytest.importorskip("mkdocs", reason="make docs has installed nothing yet")
    # torch itself names the exact versions of what its CUDA build brings along.
    needed = installed_closure([*BASE, *EXTRAS[extra]])
    assert needed - names(CONSTRAINTS) == set()


def test_the_installed_metadata_is_that_of_the_file():
    installed = importlib.metadata.distribution("lmc-compiler")
    assert installed.version == PROJECT["version"]
    assert installed.metadata["Requires-Python"] == PROJECT["requires-python"]
    [command] = [entry for entry in installed.entry_points if entry.group == "console_scripts"]
    assert (command.name, command.value) == ("lmc", "lmc.cli:main")
