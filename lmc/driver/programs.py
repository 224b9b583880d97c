"""Programs named on a command line: ``PROGRAM.py``, ``PROGRAM.py:name`` or ``PROGRAM.py:object.name``."""

from __future__ import annotations

import difflib
import io
import sys
import tokenize
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from lmc.driver.errors import ProgramImportError, UsageError
from lmc.frontend.program.function import JittedFunction
from lmc.ir.errors import LmcError, Location

_ENCODING_REMEDY = "save the file as UTF-8, or declare its encoding in its first line: # -*- coding: latin-1 -*-"


def load_program(spec: str) -> JittedFunction:
    """Run a file the user names (as importing it would) and pick its program.

    Raises ``UsageError`` where there is no such file or program, or more than one and no name; ``ProgramImportError``
    where the file raises.
    """
    file, name = _split(spec)
    path = Path(file)
    if not path.is_file():
        what = f"{file} is a folder" if path.is_dir() else f"there is no file {file}"
        raise UsageError(what, remedy="name a Python file: PROGRAM.py or PROGRAM.py:name")
    module = _run_file(path.resolve(), file)
    found = _programs_of(module)
    if name is None:
        return _only(found, module, file)
    if "." in name:
        return _member(module, name, file)
    if name not in found:
        known = [*found, *_methods_of(module)]
        own = [method for method in known if method.startswith(f"{name}.")]
        if own:
            raise UsageError(f"{name} of {file} is no program", remedy=f"name one of its programs: {file}:{own[0]}")
        near = difflib.get_close_matches(name, known, n=1)
        remedy = f"did you mean {near[0]!r}?" if near else f"it has {_listed(known)}"
        raise UsageError(f"{file} has no program {name!r}", remedy=remedy)
    return found[name]


def program_file(spec: str) -> str:
    """The file of what the user names: ``PROGRAM.py`` of ``PROGRAM.py:name``."""
    return _split(spec)[0]


def _split(spec: str) -> tuple[str, str | None]:
    """File and name. A colon that is part of the file's name is left alone."""
    file, colon, name = spec.rpartition(":")
    named = all(part.isidentifier() for part in name.split("."))
    return (file, name) if colon and named and not Path(spec).is_file() else (spec, None)


def _run_file(path: Path, shown: str) -> ModuleType:
    """Import a file of the user's. Locations in it show the path as it was named, the same on every machine."""
    folder = str(path.parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)  # what `python PROGRAM.py` does, so that the file finds its neighbours
    module = ModuleType(_module_name(path))
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    try:
        code = compile(_source(path, shown), shown, "exec", dont_inherit=True)
        exec(code, vars(module))  # noqa: S102 - the program that the user asks to run
    except ProgramImportError:
        del sys.modules[module.__name__]
        raise
    except (Exception, SystemExit) as error:
        del sys.modules[module.__name__]
        raise _import_error(error, path, shown) from error
    return module


def _source(path: Path, shown: str) -> bytes:
    """The bytes of a file that Python can read as text. Raises ``ProgramImportError``.

    Asked here, because Python takes bytes that are no text in a comment, and calls those elsewhere a syntax error.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{shown} can't be read: {error.strerror}", remedy="name a Python file") from error
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise _not_text("it is UTF-16 or UTF-32, and Python reads UTF-8", shown, 1, "save the file as UTF-8")
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        raise _not_text("it is no text: it holds a NUL byte", shown, line, "name a Python source file")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError as error:
        if "unknown encoding" in str(error):
            line = 1 if b"coding" in data.split(b"\n", 1)[0] else 2
            raise _not_text(f"it declares the {error}", shown, line, _ENCODING_REMEDY) from error
        encoding = "utf-8"  # it says otherwise, or its first lines are not; decoding finds the place
    try:
        data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        cause = f"it is not {encoding.removesuffix('-sig').upper()}: byte 0x{data[error.start]:02x}"
        raise _not_text(cause, shown, line, _ENCODING_REMEDY) from error
    return data


def _not_text(cause: str, shown: str, line: int, remedy: str) -> ProgramImportError:
    return ProgramImportError(
        f"{shown} can't be imported: {cause}", remedy=remedy, location=Location(shown, line), trace=""
    )


def _module_name(path: Path) -> str:
    """The name under which Python would import the file; another one where that is taken already."""
    name = path.stem
    while name in sys.stdlib_module_names or _is_taken(name, path):
        name += "_"
    return name


def _is_taken(name: str, path: Path) -> bool:
    """Return True if the name belongs to another file."""
    return name in sys.modules and getattr(sys.modules[name], "__file__", None) != str(path)


def _import_error(error: BaseException, path: Path, shown: str) -> ProgramImportError:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).suffix == ".py"]
    own = [frame for frame in frames if not is_library(frame.filename)]
    line = own[-1].lineno if own else None
    where = Location(own[-1].filename, line) if line is not None else None
    if isinstance(error, SyntaxError) and error.lineno is not None:
        where = Location(error.filename or str(path), error.lineno)
    last = "".join(traceback.format_exception_only(error)).strip()
    trace = "".join(traceback.format_list(own)) + last
    said, remedy = last.splitlines()[-1], f"correct it; `python {shown}` shows it too"
    if isinstance(error, LmcError):
        where, said, remedy = error.location or where, error.cause, error.remedy or remedy
    return ProgramImportError(f"{shown} can't be imported: {said}", remedy=remedy, location=where, trace=trace)


def is_library(file: str) -> bool:
    """Return True if a file belongs to Python, to lmc or to an installed package, and so is not the user's."""
    return file.startswith(("<frozen", str(Path(__file__).parents[1]), sys.base_prefix)) or "site-packages" in file


def _programs_of(module: ModuleType) -> dict[str, JittedFunction]:
    return {name: value for name, value in vars(module).items() if isinstance(value, JittedFunction)}


def _member(module: ModuleType, name: str, file: str) -> JittedFunction:
    """A program that belongs to an object or class of the file."""
    owner: Any = module
    for part in name.split("."):
        if part not in dir(owner):
            where = file if owner is module else f"{name.rpartition('.')[0]} of {file}"
            near = difflib.get_close_matches(part, dir(owner), n=1)
            known = [*_programs_of(module), *_methods_of(module)]
            raise UsageError(
                f"{where} has no {part!r}",
                remedy=f"did you mean {near[0]!r}?" if near else f"the programs of {file} are {_listed(known)}",
            )
        owner = getattr(owner, part)
    if not isinstance(owner, JittedFunction):
        raise UsageError(f"{name} of {file} is no program", remedy="decorate it with @lmc.jit")
    if owner.is_method and not owner.receiver:
        raise _without_object(name, file)
    return owner


def _without_object(name: str, file: str) -> UsageError:
    owner, _, method = name.rpartition(".")
    return UsageError(
        f"{name} of {file} is a method, and runs on an object",
        remedy=f"bind it in the file, {method} = {owner}(…).{method}, and name that: {file}:{method}",
    )


def _methods_of(module: ModuleType) -> list[str]:
    """``object.name`` of the programs that objects of the file have from their classes."""
    found = [
        f"{owner}.{name}"
        for owner, value in vars(module).items()
        for kind in reversed(type(value).__mro__)
        for name, held in vars(kind).items()
        if isinstance(held, JittedFunction)
    ]
    return list(dict.fromkeys(found))


def _method_of(module: ModuleType) -> str | None:
    """``Class.name`` of a program that a class of the file holds."""
    for value in vars(module).values():
        if isinstance(value, type) and value.__module__ == module.__name__:
            for name, held in vars(value).items():
                if isinstance(held, JittedFunction) and held.is_method:
                    return f"{value.__qualname__}.{name}"
    return None


def _only(found: dict[str, JittedFunction], module: ModuleType, file: str) -> JittedFunction:
    distinct = {id(program): name for name, program in reversed(found.items())}
    bound = [] if distinct else _methods_of(module)
    if bound:
        raise UsageError(f"{file} has programs of objects: {_listed(bound)}", remedy=f"name one: {file}:{bound[0]}")
    method = None if distinct else _method_of(module)
    if method is not None:
        raise _without_object(method, file)
    if not distinct:
        what = "is empty" if Path(file).stat().st_size == 0 else "has no program"
        raise UsageError(f"{file} {what}", remedy="decorate a function of it with @lmc.jit")
    if len(distinct) > 1:
        raise UsageError(
            f"{file} has several programs: {_listed([*found, *_methods_of(module)])}",
            remedy=f"name one: {file}:{next(iter(found))}",
        )
    return next(iter(found.values()))


def _listed(names: list[str]) -> str:
    return ", ".join(names) or "none"
