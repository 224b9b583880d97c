"""The benchmark of masked draws on a GPU, where there is none."""

from typing import Any

import pytest
import torch

from benchmarks import gpu_constraints
from benchmarks.constraining.torch_draws import KINDS, Step, bitmask, masks, torch_step
from lmc.runtime.kernels.masked_draw import draw_masked


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_timed_in_torch_is_the_same(kind: str) -> None:
    whole = Step.of(300, 12, torch.float32, "cpu")
    step = whole.sampled(kind, 9)
    expected = draw_masked(step.logits, step.draws, step.tables)
    found = torch_step(step, masks(whole), kind)
    assert all(map(torch.equal, found, expected))


def test_masks_are_packed_as_xgrammar_packs_them() -> None:
    step = Step.of(70, 5, torch.float32, "cpu")
    allowed = masks(step)
    packed = bitmask(step, allowed)
    assert packed.shape == (5, 3)
    for row, state in enumerate(step.draws.states.tolist()):
        bits = [bool(int(packed[row, token // 32]) >> token % 32 & 1) for token in range(70)]
        assert bits == allowed[state].tolist()


def by_reference(*arguments: Any, implementation: str | None = None) -> Any:
    del implementation
    return draw_masked(*arguments, implementation="reference")


def test_it_says_what_was_equal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(gpu_constraints, "draw_masked", by_reference)
    assert gpu_constraints.main(["--device", "cpu", "--quick"]) == 0
    printed = capsys.readouterr().out
    assert "| 300 | bfloat16 | 6/6 | 0 | no CUDA |" in printed
    assert "| 300 | 2 | top-k 50 |" in printed
    assert gpu_constraints.main(["--device", "cpu", "--quick", "--seconds", "-1"]) == 0
    assert "left out: no time" in capsys.readouterr().out


def test_it_says_what_was_not(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def wrong(*arguments: Any, **options: Any) -> Any:
        drawn = by_reference(*arguments, **options)
        return drawn._replace(states=drawn.states + 1)

    monkeypatch.setattr(gpu_constraints, "draw_masked", wrong)
    assert gpu_constraints.main(["--device", "cpu", "--quick"]) == 1
    assert "| 300 | float32 | 0/6 |" in capsys.readouterr().out


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_without_a_gpu_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu_constraints.main([]) == 2
    assert capsys.readouterr().out == "There is no CUDA device here: nothing was checked, nothing measured.\n"


def test_only_what_a_gpu_gave_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--write", "--device", "cpu"], ["--write", "--quick"]):
        with pytest.raises(SystemExit):
            gpu_constraints.main(arguments)
        assert "only the whole table of a CUDA device is kept" in capsys.readouterr().err
