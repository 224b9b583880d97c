import lmc.frontend.sglang as former
import lmc.sglang as sgl


def test_the_former_import_path_gives_the_same_language():
    assert {name: getattr(former, name) for name in sgl.__all__} == {name: getattr(sgl, name) for name in sgl.__all__}
