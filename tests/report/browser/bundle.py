"""The libraries of the page in one file: ``python -m tests.report.browser.bundle`` writes it.

``make browser`` installs them in ``build/browser``, by ``package.json`` and ``package-lock.json`` in this folder.
"""

import subprocess
import tempfile
from pathlib import Path

from lmc.report.page import STATIC
from tests.project.layers import REPOSITORY

TOOLS = REPOSITORY / "build" / "browser" / "node_modules"
LIBRARIES = ("cytoscape", "@dagrejs/dagre", "@dagrejs/graphlib")
ENTRY = 'import cytoscape from "cytoscape"; import dagre from "@dagrejs/dagre"; export { cytoscape, dagre };\n'
VENDOR = STATIC / "vendor.js"


def bundle() -> str:
    """Return the libraries, minified, with their licences before them."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "vendor.js"
        options = ["--bundle", "--minify", "--format=iife", "--global-name=vendor", "--target=es2020"]
        subprocess.run(
            [
                TOOLS / ".bin" / "esbuild",
                *options,
                "--charset=ascii",
                "--legal-comments=none",
                "--log-level=error",
                f"--outfile={out}",
            ],
            input=ENTRY,
            text=True,
            cwd=TOOLS.parent,
            check=True,
        )
        code = out.read_text(encoding="ascii")
    found = f"{''.join(map(_licence, LIBRARIES))}{code}"
    assert not [word for word in ("</script", "<!--", "*/*/") if word in found.lower()], "HTML would end the script"
    return found


def _licence(name: str) -> str:
    folder = TOOLS / name
    text = (folder / "LICENSE").read_text(encoding="utf-8").strip().replace("*/", "* /")
    text = text.encode("ascii", "replace").decode("ascii")
    version = subprocess.run(
        ["node", "-p", f"require('./{folder.relative_to(TOOLS.parent)}/package.json').version"],
        cwd=TOOLS.parent,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    return f"/*! {name} {version}\n\n{text}\n*/\n"


if __name__ == "__main__":
    VENDOR.write_text(bundle(), encoding="ascii")
