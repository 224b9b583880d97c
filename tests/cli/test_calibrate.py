import json
from pathlib import Path

import pytest

from lmc.cache.simulation.report import CostModel
from lmc.driver.targets import calibrations
from lmc.driver.targets.calibrations import calibration_of
from lmc.ir.engine.target import Target


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of calibrations, of this test alone."""
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("LMC_CALIBRATIONS", str(folder / "calibrations.json"))
    return folder / "calibrations.json"


def test_the_steps_of_the_built_in_model(lmc, kept: Path, monkeypatch: pytest.MonkeyPatch):
    assert calibration_of(Target("builtin")) is None
    said = lmc("calibrate", "--model", "builtin", "--seconds", "2", "--json")
    assert (said.code, said.err.strip()) == (0, f"kept in {kept}")
    data = json.loads(said.out)
    assert data["target"] == "builtin"
    assert data["steps"] > 20
    assert "date" not in data
    cost = CostModel(**data["constants"])
    assert cost.step + cost.row > 0
    found = calibration_of(Target("builtin"))
    assert found is not None
    assert (found.cost, found.mean_error, found.machine) == (cost, data["mean_error"], data["machine"])
    assert kept.stat().st_mode & 0o777 == 0o600
    # Another dtype, another number of threads: other steps.
    assert calibration_of(Target("builtin", dtype="bfloat16")) is None
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert calibration_of(Target("builtin")) is None


def test_the_fit_is_printed(lmc, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LMC_CALIBRATIONS", "off")
    said = lmc("calibrate", "--model", "builtin", "--seconds", "1")
    assert said.code == 0
    assert "µs  a row\n" in said.out
    assert "mean, " in said.out
    assert "the constants are not kept" in said.err


@pytest.mark.parametrize(
    ("model", "code", "cause"),
    [
        ("toy", 2, "toy has no steps that could be measured"),
        ("openai:gpt-4.1", 2, "openai:gpt-4.1 has no steps"),
        ("local:nowhere", 1, "there is no model folder nowhere"),
    ],
)
def test_only_a_local_model_has_steps(lmc, model: str, code: int, cause: str):
    said = lmc("calibrate", "--model", model)
    assert (said.code, said.out) == (code, "")
    assert cause in said.err


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"version": 2, "calibrations": {}}',
        '{"version": 1}',
        '{"version": 1, "calibrations": {"a": {"date": "2026-01-01", "machine": "", "mean_error": 0, "cost": {}}}}',
        '{"version": 1, "calibrations": {"a": {"date": "2026-01-01", "machine": "", "mean_error": 0, '
        '"cost": {"step": -1, "row": 0, "attended": 0}}}}',
    ],
)
def test_a_wrong_file_is_a_warning(kept: Path, text: str):
    kept.write_text(text)
    with pytest.warns(UserWarning, match="is no file of calibrations"):
        assert calibration_of(Target("builtin")) is None


def test_models_with_equal_configurations_share_it(kept: Path, tmp_path: Path):
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text("{}")
    one, other = (Target("local", str(tmp_path / name)) for name in ("one", "other"))
    found = calibrations.Calibration(
        calibrations.datetime.date(2026, 1, 2), "a machine", CostModel(step=1, row=2, attended=3), 0.25
    )
    assert calibrations.keep_calibration(one, found) == kept
    assert calibration_of(one) == calibration_of(other) == found
    (tmp_path / "other" / "config.json").write_text("{ }")
    assert calibration_of(other) is None
