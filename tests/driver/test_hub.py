"""Models by their name on the hub: from a cache laid out as the hub's, and from a server on loopback in its place."""

import hashlib
import json
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from huggingface_hub import constants

import lmc
from lmc import builtin_model
from lmc.driver.targets import hub
from lmc.driver.targets.hub import model_snapshot
from lmc.driver.targets.registry import load_tokenizer, model_folder
from lmc.ir.engine.target import Target
from lmc.ir.errors import InputError

COMMIT = "0123456789" * 4
FILES = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors")


@pytest.fixture(autouse=True)
def nothing_resolved() -> Iterator[None]:
    model_snapshot.cache_clear()
    yield
    model_snapshot.cache_clear()


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty cache, in a process without a network."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return tmp_path / "hub"


def add_model(cache: Path, names: tuple[str, ...] = FILES, *, repository: str = "org/small") -> Path:
    """Put the built-in model into a cache as the hub's client lays it out: blobs, snapshots and refs."""
    folder = cache / f"models--{repository.replace('/', '--')}"
    snapshot = folder / "snapshots" / COMMIT
    for each in (folder / "blobs", folder / "refs", snapshot):
        each.mkdir(parents=True, exist_ok=True)
    (folder / "refs" / "main").write_text(COMMIT)
    for name in names:
        data = (builtin_model.path() / name).read_bytes()
        blob = folder / "blobs" / hashlib.sha256(data).hexdigest()
        blob.write_bytes(data)
        (snapshot / name).symlink_to(Path("../../blobs") / blob.name)
    return snapshot


def test_a_cached_model_is_used_without_a_network(cache: Path):
    snapshot = add_model(cache)
    assert model_snapshot("org/small", weights=True) == snapshot
    assert model_snapshot(f"org/small@{COMMIT}", weights=True) == snapshot
    assert model_folder(Target.parse("hf:org/small@main")) == snapshot


def test_a_program_runs_on_a_cached_model(cache: Path):
    add_model(cache)

    @lmc.jit
    def program(s):
        s += lmc.user("Is the topic of the essay cats?")
        return s.select("answer", ["yes", "no"])

    assert program.on("hf:org/small", kv_tokens=512)() == program.on("builtin")()


def test_a_tokenizer_needs_no_weights(cache: Path):
    add_model(cache, FILES[:-1])
    assert load_tokenizer(Target.parse("hf:org/small")).folder == str(model_snapshot("org/small", weights=False))
    with pytest.raises(InputError, match=r"and \S+ does not have model\.safetensors of it"):
        model_snapshot("org/small", weights=True)


def test_what_is_not_cached_names_cache_and_remedy(cache: Path):
    with pytest.raises(InputError, match=r"hf:org/absent can't be downloaded \(HF_HUB_OFFLINE is set\)") as caught:
        model_snapshot("org/absent", weights=True)
    assert str(cache) in caught.value.cause
    assert "`hf download org/absent`" in (caught.value.remedy or "")
    with pytest.raises(InputError) as caught:
        model_snapshot("org/absent@v2", weights=True)
    assert "`hf download org/absent --revision v2`" in (caught.value.remedy or "")
    with pytest.raises(InputError, match="hf:org/absent@ names no revision"):
        model_snapshot("org/absent@", weights=True)


@pytest.mark.parametrize("name", ["a/b/c", "org/..", "org name/x"])
def test_a_name_that_is_none_is_an_error(cache: Path, name: str):
    with pytest.raises(InputError, match="is no name of a model"):
        model_snapshot(name, weights=False)


def test_an_index_names_the_weights(cache: Path):
    snapshot = add_model(cache, FILES[:-1])
    (snapshot / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "part-1.safetensors"}}))
    with pytest.raises(InputError, match=r"does not have part-1\.safetensors of it"):
        model_snapshot("org/small", weights=True)
    (snapshot / "part-1.safetensors").write_bytes(b"")
    assert model_snapshot("org/small", weights=True) == snapshot


@pytest.mark.parametrize(
    "index", ["{}", "[]", "{", '{"weight_map": {"a": "../x.safetensors"}}', '{"weight_map": {"a": "x.bin"}}']
)
def test_a_wrong_index_is_an_error(cache: Path, index: str):
    snapshot = add_model(cache)
    (snapshot / "model.safetensors.index.json").write_text(index)
    with pytest.raises(InputError, match="index"):
        model_snapshot("org/small", weights=True)


class Hub(BaseHTTPRequestHandler):
    """The part of the hub's interface that a download needs, for one model in ``folder``."""

    folder: Path
    asked: list[str]

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def answer(self, *, body: bool) -> None:
        path = self.path.partition("?")[0]
        self.asked.append(path)
        names = sorted(entry.name for entry in self.folder.iterdir())
        if path.startswith("/api/models/org/gated"):
            return self.refuse(403, "GatedRepo")
        if path.startswith("/api/models/org/small/revision/"):
            if not path.endswith(("/main", COMMIT)):
                return self.refuse(404, "RevisionNotFound")
            known = {"id": "org/small", "sha": COMMIT, "siblings": [{"rfilename": name} for name in names]}
            return self.send(json.dumps(known).encode(), body=body, kind="application/json")
        if path == f"/api/models/org/small/tree/{COMMIT}":
            sizes = {name: (self.folder / name).stat().st_size for name in names}
            tree = [{"type": "file", "path": name, "size": size, "oid": f"{size:040}"} for name, size in sizes.items()]
            return self.send(json.dumps(tree).encode(), body=body, kind="application/json")
        prefix = f"/org/small/resolve/{COMMIT}/"
        if path.startswith(prefix) and path.removeprefix(prefix) in names:
            data = (self.folder / path.removeprefix(prefix)).read_bytes()
            return self.send(data, body=body, kind="application/octet-stream")
        return self.refuse(404, "RepoNotFound" if path.startswith("/api/models/") else "EntryNotFound")

    def send(self, data: bytes, *, body: bool, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("ETag", f'"{len(data):040}"')
        self.end_headers()
        if body:
            self.wfile.write(data)

    def refuse(self, status: int, code: str) -> None:
        self.send_response(status)
        self.send_header("X-Error-Code", code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@pytest.fixture
def server(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[type[Hub]]:
    """A hub on loopback that has org/small: the built-in model, beside pickled weights and code."""
    folder = tmp_path / "served"
    folder.mkdir()
    for name in FILES:
        shutil.copy(builtin_model.path() / name, folder / name)
    for name in ("pytorch_model.bin", "modeling_small.py", "README.md"):
        (folder / name).write_text("not to be downloaded")
    handler = type("HubOfTest", (Hub,), {"folder": folder, "asked": []})
    served = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=served.serve_forever, daemon=True).start()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{served.server_port}")
    monkeypatch.setattr(
        constants, "HUGGINGFACE_CO_URL_TEMPLATE", constants.ENDPOINT + "/{repo_id}/resolve/{revision}/{filename}"
    )
    monkeypatch.delenv("HF_HUB_OFFLINE")
    yield handler
    served.shutdown()
    served.server_close()


def test_what_is_missing_is_downloaded_with_its_size_and_nothing_else(
    server: type[Hub], cache: Path, capsys: pytest.CaptureFixture[str]
):
    folder = model_snapshot("org/small", weights=False)
    assert "Downloading hf:org/small: 4 files, 0.1 MB" in capsys.readouterr().err
    assert {entry.name for entry in folder.iterdir()} == set(FILES[:-1])
    assert model_snapshot("org/small", weights=True) == folder
    assert f"Downloading hf:org/small@{COMMIT}: 1 file, 9.1 MB" in capsys.readouterr().err
    assert {entry.name for entry in folder.iterdir()} == set(FILES)
    assert (folder / "model.safetensors").read_bytes() == (builtin_model.path() / "model.safetensors").read_bytes()


def test_a_downloaded_model_is_used_when_the_network_is_gone(
    server: type[Hub], cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    folder = model_snapshot("org/small", weights=True)
    model_snapshot.cache_clear()
    capsys.readouterr()
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")  # the discard port: nobody listens
    assert model_snapshot("org/small", weights=True) == folder
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("org/absent", "there is no model hf:org/absent, or you may not read it"),
        ("org/gated", "hf:org/gated is gated"),
        ("org/small@v9", "the model hf:org/small has no revision 'v9'"),
    ],
)
def test_what_the_hub_refuses_is_an_error(server: type[Hub], name: str, cause: str):
    with pytest.raises(InputError, match=cause) as caught:
        model_snapshot(name, weights=True)
    assert caught.value.remedy


def test_a_model_of_pickles_is_refused(server: type[Hub]):
    (server.folder / "model.safetensors").unlink()
    with pytest.raises(InputError, match=r"hf:org/small has no model\.safetensors"):
        model_snapshot("org/small", weights=True)


def test_a_model_without_a_fast_tokenizer_is_refused(server: type[Hub]):
    (server.folder / "tokenizer.json").unlink()
    with pytest.raises(InputError, match=r"hf:org/small has no tokenizer\.json"):
        model_snapshot("org/small", weights=False)


def test_the_description_of_a_model_holds_no_code_and_no_pickle():
    assert all(name.endswith((".json", ".jinja")) for name in hub.DESCRIPTION)
