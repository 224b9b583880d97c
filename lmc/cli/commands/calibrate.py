"""``lmc calibrate``: measure the seconds of an engine's steps on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from lmc import driver
from lmc.cli.options import Deterministic, Device, Dtype, PrefillTokens
from lmc.cli.output import print_note, target_spec, to_json, write_out

_MEANINGS = {
    "step": "a step",
    "row": "a row",
    "drawn": "a row whose logits are read",
    "attended": "a key that a row attends to",
    "held": "a page that is read",
}


def calibrate_command(
    *,
    model: Annotated[str, typer.Option(help="A local target: builtin, the path of a model folder or hf:ORG/NAME.")],
    seconds: Annotated[
        float, typer.Option(metavar="S", min=0.1, max=3600, help="The time that measuring may take, after loading.")
    ] = 60.0,
    dtype: Dtype = None,
    deterministic: Deterministic = None,
    device: Device = None,
    prefill_tokens: PrefillTokens = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure the steps of a local model on this machine, so that seconds can be predicted.

    The engine computes steps of different sizes: prompts in parts, up to 128 requests that decode, and long contexts.
    The constants of lmc's cost model are fitted to their seconds by least squares of relative errors.

    The result is kept in the user's cache, for this model, dtype, device, and number of threads. lmc cost, lmc simulate
    and lmc viz use it. Weights change no time: models with equal config.json share it.

    Measure on an idle machine, with the engine options of the runs to predict.
    """
    given: driver.GivenOptions = {
        "target": target_spec(model),
        "dtype": dtype,
        "deterministic": deterministic,
        "device": device,
        "prefill_tokens": prefill_tokens,
    }
    report = driver.calibrate.run(given, seconds=seconds)
    data = report.to_json()
    if as_json:
        write_out(to_json(data) + "\n")
    else:
        constants = data["constants"]
        lines = [f"{report.target} on {data['machine']}, calibrated {report.calibration.date}"]
        lines += [f"{constants[name] * 1e6:14,.3f} µs  {meaning}" for name, meaning in _MEANINGS.items()]
        lines.append(f"A step takes as long as one of {constants['least_rows']:,} rows at least.")
        lines.append(
            f"error by size of {data['steps']:,} steps: {data['mean_error']:.1%} mean, {data['largest_error']:.1%} most"
        )
        write_out("".join(f"{line}\n" for line in lines))
    if report.file is None:
        print_note("the constants are not kept: there is no folder for them that can be written")
    else:
        print_note(f"kept in {report.file}")
