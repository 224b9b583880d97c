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


def test_unknown_options_are_refused():
    with pytest.raises(InputError, match="unknown dtype 'int8'"):
        Target.parse("toy", dtype="int8")
    with pytest.raises(InputError, match="deterministic is 1"):
        Target.parse("builtin", deterministic=1)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="kv_tokens is 0"):
        Target.parse("toy", kv_tokens=0)
    for device in ("gpu", "cuda:", "cuda:x", "CPU", "", "cuda:0\n", 0):
        with pytest.raises(InputError, match=f"unknown device {device!r}".replace("\\", r"\\")) as caught:
            Target.parse("builtin", device=device)  # pyright: ignore[reportArgumentType]
        assert '"cuda:1"' in (caught.value.remedy or "")
    for tokens in (0, -1, True, "8", 2.0):
        with pytest.raises(InputError, match=f"prefill_tokens is {tokens!r}"):
            Target.parse("builtin", prefill_tokens=tokens)  # pyright: ignore[reportArgumentType]
    assert Target.parse("builtin", kv_tokens="auto") == Target.parse("builtin")
