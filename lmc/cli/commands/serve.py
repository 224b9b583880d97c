"""``lmc serve``: an engine over HTTP."""

from __future__ import annotations

import logging
import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from lmc import driver
from lmc.cli.options import Deterministic, Device, Dtype, KvTokens, PrefillTokens, kv_tokens_of
from lmc.cli.output import MODELS, print_note, target_spec


def serve_command(
    *,
    model: Annotated[str | None, typer.Option(help=f"Target: {MODELS}.")] = None,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65_535, help="The port; 0 is any that is free.")] = 8000,
    api_key_env: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The environment variable with the key that clients must send."),
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Serve other machines without a key: anyone can use the server.")
    ] = False,
    allow_origin: Annotated[
        str | None, typer.Option(metavar="ORIGIN", help="The origin of web pages that may use the server.")
    ] = None,
    max_body: Annotated[
        int,
        typer.Option(
            metavar="BYTES", min=1, help="The largest file or batch. Bodies of other requests have at most 4 MiB."
        ),
    ] = 32 << 20,
    max_waiting: Annotated[
        int, typer.Option(metavar="N", min=0, help="Generations that may wait; further requests get 429.")
    ] = 512,
    drain_seconds: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="Time for running requests after SIGTERM.")
    ] = 30.0,
    programs: Annotated[
        list[str] | None,
        typer.Option(
            "--program", metavar="PROGRAM.py[:name]", help="A program to serve at /v1/programs; may be repeated."
        ),
    ] = None,
    log_texts: Annotated[bool, typer.Option("--log-texts", help="Log outputs too.")] = False,
    state: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where files and batches are kept, for this server and the next one."),
    ] = None,
    dtype: Dtype = None,
    kv_tokens: KvTokens = None,
    deterministic: Deterministic = None,
    device: Device = None,
    prefill_tokens: PrefillTokens = None,
) -> None:
    """Serve a model over HTTP, for clients of OpenAI, Anthropic and SGLang.

    Listens on http://127.0.0.1:8000, for this machine alone, once the model is loaded. Ctrl-C or SIGTERM lets running
    requests finish; a second one ends them.
    """
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(message)s")
    if insecure:
        print_note("warning: without a key, anyone who reaches the server can use it")
    given = {
        "target": target_spec(model),
        "dtype": dtype,
        "kv_tokens": kv_tokens_of(kv_tokens),
        "deterministic": deterministic,
        "device": device,
        "prefill_tokens": prefill_tokens,
    }
    options = driver.serve.ServeOptions(
        host,
        port,
        api_key_env,
        insecure,
        allow_origin,
        max_body,
        max_waiting,
        drain_seconds,
        log_texts,
        state,
        tuple(programs or ()),
    )
    driver.serve.serve(given, options, partial(_print_start, api_key_env))


_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104
"""Addresses that a server listens on and no client can ask for everywhere, and one that this machine can."""


def _print_start(api_key_env: str | None, url: str, name: str) -> None:
    """Print where the server is, and a line for each kind of client."""
    others = ""
    for address, loopback in _ANY_ADDRESS.items():
        if url.startswith(f"http://{address}:"):
            url = url.replace(address, loopback)
            others = "other machines: under any name of this one; "
    print_note(f"{name} is served at {url} ({others}Ctrl-C ends it)")
    key = '"none"' if api_key_env is None else f'os.environ["{api_key_env}"]'
    of_sglang = "" if api_key_env is None else f", api_key={key}"
    print_note(f'  OpenAI:    openai.OpenAI(base_url="{url}/v1", api_key={key})  # model="{name}"')
    print_note(f'  Anthropic: anthropic.Anthropic(base_url="{url}", api_key={key})  # model="{name}"')
    print_note(f'  SGLang:    sglang.RuntimeEndpoint("{url}"{of_sglang})')
