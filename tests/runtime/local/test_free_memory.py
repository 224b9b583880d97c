import os
import platform
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from lmc.runtime.local import free_memory as module
from lmc.runtime.local.free_memory import (
    control_group_memory,
    free_memory,
    machine_memory,
    return_free_memory,
)

GIB = 2**30


def group(folder: Path, limit: int | str, usage: int, stat: str = "", *, version: int = 2) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    names = ("memory.max", "memory.current") if version == 2 else ("memory.limit_in_bytes", "memory.usage_in_bytes")
    (folder / names[0]).write_text(f"{limit}\n")
    (folder / names[1]).write_text(f"{usage}\n")
    (folder / "memory.stat").write_text(stat)


def left(root: Path, line: str) -> list[int]:
    own = root / "own"
    own.write_text(line)
    return list(control_group_memory(root / "mount", own))


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries keep nothing that could be returned")
def test_what_was_freed_goes_back_to_the_system() -> None:
    blocks = [torch.ones(4000) for _ in range(5000)]  # 80 MB, each from the heap
    kept = blocks[::50]
    del blocks
    before = resident_bytes()
    return_free_memory()
    assert before - resident_bytes() > 40 * 2**20
    assert len(kept) == 100


def test_linux_says_what_is_available(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 8 kB\nMemAvailable:   5 kB\n")
    assert machine_memory(tmp_path / "meminfo") == 5 * 1024


def test_elsewhere_half_of_what_this_process_leaves_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 4 * GIB // 4096}
    monkeypatch.setattr(module.os, "sysconf", sizes.__getitem__)
    monkeypatch.setattr(module.sys, "platform", "darwin")
    usage = SimpleNamespace(ru_maxrss=GIB)
    monkeypatch.setattr(module.resource, "getrusage", lambda who: usage)
    assert machine_memory(tmp_path / "none") == 3 * GIB // 2
    monkeypatch.setattr(module.sys, "platform", "freebsd")
    usage.ru_maxrss = GIB // 1024
    assert machine_memory(tmp_path / "none") == 3 * GIB // 2


def test_a_container_is_limited_by_its_group_and_those_above(tmp_path: Path) -> None:
    mount = tmp_path / "mount"
    group(mount / "job" / "task", 4 * GIB, GIB, f"anon 5\ninactive_file {GIB // 2}\nactive_file 0\n")
    group(mount / "job", 3 * GIB, 2 * GIB)
    group(mount, "max", 9 * GIB)
    assert left(tmp_path, "0::/job/task\n") == [7 * GIB // 2, GIB]
    # Seen from inside, the path of the group may not exist: its own files are at the mount.
    group(mount, 2 * GIB, GIB)
    assert left(tmp_path, "0::/elsewhere\n") == [GIB]


def test_version_1_of_control_groups(tmp_path: Path) -> None:
    memory = tmp_path / "mount" / "memory"
    group(memory / "job", 2 * GIB, GIB, f"inactive_file 1\ntotal_inactive_file {GIB // 4}\n", version=1)
    group(memory, 2**63 - 4096, 9 * GIB, version=1)
    assert left(tmp_path, "5:cpu,cpuacct:/job\n4:memory:/job\n1:name=systemd:/\n") == [5 * GIB // 4]


def test_without_control_groups_there_is_no_limit(tmp_path: Path) -> None:
    assert list(control_group_memory(tmp_path, tmp_path / "none")) == []
    assert left(tmp_path, "0::/\n") == []


def test_the_least_of_all_counts_and_never_less_than_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = torch.device("cpu")
    monkeypatch.setattr(module, "machine_memory", lambda: 5 * GIB)
    for limits, expected in (([], 5 * GIB), ([GIB, 7 * GIB], GIB), ([-GIB], 0)):
        monkeypatch.setattr(module, "control_group_memory", lambda limits=limits: iter(limits))
        assert free_memory(cpu) == expected
