from __future__ import annotations

from dataclasses import replace

import pytest

from lmc.ir.engine.target import Target
from lmc.ir.errors import InputError


@pytest.mark.parametrize("spec", ["builtin", "toy", "local:models/tiny", "local:a:b"])
def test_targets_are_read_and_written(spec: str):
    target = Target.parse(spec, dtype="bfloat16", kv_tokens=9)
    assert target.spec == spec
    assert (target.dtype, target.kv_tokens, target.device) == ("bfloat16", 9, "auto")
    for device in ("auto", "cpu", "cuda", "cuda:12"):
        assert Target.parse(spec, device=device, prefill_tokens=7) == replace(
            Target.parse(spec), device=device, prefill_tokens=7
        )


@pytest.mark.parametrize("spec", ["", "local", "local:", "toy:x", "gpu", "builtin:"])
def test_unknown_targets_are_refused(spec: str):
    with pytest.raises(InputError, match="unknown target") as caught:
        assert Target.parse(spec).spec == spec
    assert "local:PATH" in (caught.value.remedy or "")
