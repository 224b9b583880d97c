"""Profiles in files: read for a compilation, written by a run."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from lmc.driver.errors import UsageError
from lmc.frontend.source.locations import user_location
from lmc.ir.errors import InputError
from lmc.ir.profile import MAX_CHARACTERS, Profile, Recording

ProfileOption = Profile | str | os.PathLike[str]
"""A profile, or the file that holds it."""


def read_profile(path: str | os.PathLike[str], program: str | None = None) -> Profile:
    """The profile in a file, of ``program`` where that is known.

    Raises ``UsageError`` where there is no file, ``InputError`` where there is no profile, or one of another program.
    """
    shown = os.fspath(path)
    try:
        with Path(path).open(encoding="utf-8") as file:
            text = file.read(MAX_CHARACTERS + 1)
    except OSError as error:
        remedy = "name a file that a run has written: lmc run PROGRAM.py --profile-generate FILE"
        raise UsageError(f"{shown} can't be read: {error.strerror}", remedy=remedy) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{shown} is no text", remedy="name a file that holds a saved Profile") from error
    try:
        found = Profile.from_json(text)
        if program is not None:
            _check_program(found, program)
    except InputError as error:
        raise InputError(f"{shown}: {error.cause}", remedy=error.remedy) from error
    return found


def profile_for(program: str, option: ProfileOption) -> Profile:
    """The profile that the user gave for ``program``. Raises ``InputError`` at the user's line."""
    try:
        if not isinstance(option, Profile | str | os.PathLike):
            raise InputError(f"profile is {option!r:.80}", remedy="give a Profile, or the path of a file with one")
        if not isinstance(option, Profile):
            return read_profile(option, program)
        _check_program(option, program)
    except InputError as error:
        error.location = error.location or user_location()
        raise
    return option


def _check_program(profile: Profile, program: str) -> None:
    """Raise ``InputError`` where ``profile`` is of another program."""
    if profile.program != program:
        raise InputError(
            f"the profile is of the program {profile.program!r}, not of {program!r}",
            remedy="make one with a run of this program: lmc run PROGRAM.py --profile-generate FILE",
        )


class ProfileFile:
    """The file that a run writes its profile to. Invalid arguments are refused before anything runs.

    With ``merge`` the file's counts are kept and added to. Raises ``UsageError``, and ``InputError`` if it holds no
    profile of ``program``.
    """

    def __init__(self, path: str, program: str, *, merge: bool) -> None:
        self._shown = path
        self._path = Path(path).resolve()
        self._program = program
        self._recording = Recording()
        self._counted = False
        if path == "-" or (self._path.exists() and not self._path.is_file()):  # a device would be replaced
            raise UsageError(
                f"--profile-generate {path} is no file", remedy="name a file, which the run writes at its end"
            )
        if not os.access(self._path.parent, os.W_OK):
            raise self._cannot_write("its folder is not there to write to")
        if merge and self._path.exists():
            self._recording.add(read_profile(path, program))

    def add(self, profile: Profile) -> None:
        """Add the counts of an instance."""
        self._recording.add(profile)
        self._counted |= bool(profile.ops or profile.branches or profile.repeats)

    def write(self) -> bool:
        """Replace the file atomically. Raises ``UsageError`` on failure.

        Return False, and leave the file as it is, if nothing was counted.
        """
        if not self._counted:
            return False
        partial = self._path.with_name(f".{self._path.name}.{os.getpid()}.partial")
        try:
            partial.write_text(self._recording.profile(self._program).to_json(), encoding="utf-8")
            partial.replace(self._path)
        except OSError as error:
            with contextlib.suppress(OSError):
                partial.unlink()
            raise self._cannot_write(error.strerror or str(error)) from error
        return True

    def _cannot_write(self, why: str) -> UsageError:
        return UsageError(f"{self._shown} can't be written: {why}", remedy="name a file in a folder you may write to")
