from lmc.runtime.kernels.native.build import SOURCES


def test_every_source_is_compiled_and_every_header_is_part_of_the_hash() -> None:
    for pattern, listed in (("*.c", SOURCES.files), ("*.h", SOURCES.headers)):
        assert sorted(listed) == sorted(path.name for path in SOURCES.folder.glob(pattern))
