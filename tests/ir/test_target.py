from __future__ import annotations

import pytest

from lmc.ir.errors import InputError
from lmc.ir.target import Target


@pytest.mark.parametrize("spec", ["builtin", "toy", "local:models/tiny", "local:a:b"])
def test_targets_are_read_and_written(spec: str):
    target = Target.parse(spec, dtype="bfloat16", kv_tokens=9)
    assert target.spec == spec
    assert (target.dtype, target.kv_tokens) == ("bfloat16", 9)


@pytest.mark.parametrize("spec", ["", "local", "local:", "toy:x", "gpu", "builtin:"])
def test_unknown_targets_are_refused(spec: str):
    with pytest.raises(InputError, match="unknown target") as caught:
        assert Target.parse(spec).spec == spec
    assert "local:PATH" in (caught.value.remedy or "")


def test_unknown_options_are_refused():
    with pytest.raises(InputError, match="unknown dtype 'int8'"):
        Target.parse("toy", dtype="int8")
    with pytest.raises(InputError, match="deterministic is 1"):
        Target.parse("builtin", deterministic=1)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="kv_tokens is 0"):
        Target.parse("toy", kv_tokens=0)
    assert Target.parse("builtin", kv_tokens="auto") == Target.parse("builtin")
