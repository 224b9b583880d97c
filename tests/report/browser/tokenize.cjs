// Reads {grammar, texts} as JSON from standard input; writes, for each text, [start, end, scope] of each token, as the
// engine of VS Code finds them. Runs in the folder of the installed packages.
"use strict";
const fs = require("fs");
const path = require("path");
const installed = require("module").createRequire(path.join(process.cwd(), "node_modules", "x.js"));
const textmate = installed("vscode-textmate");
const oniguruma = installed("vscode-oniguruma");

async function main() {
  const { grammar, texts } = JSON.parse(fs.readFileSync(0, "utf8"));
  await oniguruma.loadWASM(fs.readFileSync(installed.resolve("vscode-oniguruma/release/onig.wasm")).buffer);
  const registry = new textmate.Registry({
    onigLib: Promise.resolve({
      createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
      createOnigString: (text) => new oniguruma.OnigString(text),
    }),
    loadGrammar: async () => textmate.parseRawGrammar(grammar, "lmir.json"),
  });
  const loaded = await registry.loadGrammar("source.lmir");
  const found = texts.map((/** @type {string} */ text) => {
    const tokens = [];
    let start = 0;
    let stack = textmate.INITIAL;
    for (const line of text.split("\n")) {
      const { tokens: pieces, ruleStack } = loaded.tokenizeLine(line, stack);
      stack = ruleStack;
      for (const piece of pieces) {
        const end = Math.min(piece.endIndex, line.length);
        tokens.push([start + piece.startIndex, start + end, piece.scopes.slice(1).join(" ")]);
      }
      start += line.length + 1;
    }
    return tokens;
  });
  process.stdout.write(JSON.stringify(found));
}

main();
