/** The selection: all that the data hold about the selected ops. */

const MAX_LISTED = 200;

class SelectionPane {
  /** @param {Session} session */
  constructor(session) {
    this.session = session;
    this.box = byId("selection");
    session.on(["selection", "stage", "data"], () => this.draw());
    this.draw();
  }

  draw() {
    const keys = [...this.session.selected];
    if (keys.length === 0) this.box.replaceChildren(...this.overview());
    else if (keys.length === 1) this.box.replaceChildren(...this.op(keys[0]));
    else this.box.replaceChildren(...this.several(keys));
  }

  /** The program, where nothing is selected. */
  overview() {
    const { data } = this.session;
    const { program, plan, timeline: run } = data.view;
    const old = data.view.old?.program;
    /** @type {(of: (program: lmc.ProgramView) => string) => string} */
    const both = (of) => changedFrom(of(program), old && of(old));
    /** @type {[string, string | Node][]} */
    const rows = [
      ...Object.entries(program.parameters).map(([name, type]) => /** @type {[string, string]} */ ([`parameter ${name}`, type])),
      ["target", program.target ?? ""],
      ["level", program.level ?? ""],
      ["ops", program.captured_ops ? `${number(program.ops)} (${number(program.captured_ops)} captured)` : both((one) => number(one.ops))],
      ["model calls", both((one) => number(one.model_calls))],
      ["waves", both((one) => number(one.waves))],
      ["critical path", both((one) => typeof one.critical_calls === "number" ? counted(one.critical_calls, "call") : "")],
      ["prefixes of the batch", both((one) => typeof one.batch_prefixes === "number" ? number(one.batch_prefixes) : "")],
      ["prefixes of an instance", both((one) => typeof one.instance_prefixes === "number" ? number(one.instance_prefixes) : "")],
      ["saved, an instance", savedText(program) || (data.view.comparison || data.last === 0 ? "" : "nothing")],
      ...Object.entries(program.host_functions ?? {}).map(([name, effect]) => /** @type {[string, string]} */ ([`tool ${name}`, effect])),
    ];
    /** @type {Node[]} */
    const found = [make("h3", {}, both((one) => one.name)), facts(rows)];
    if (plan) {
      found.push(
        make("h3", {}, "Plan of the batch"),
        facts([
          ["rows", number(plan.row_count)],
          ["order", plan.order],
          ["requests", number(plan.total.requests ?? 0)],
          ["prompt tokens", number(plan.total.prompt ?? 0)],
          ["found in the cache", number(plan.total.cached ?? 0)],
          ["hit rate", percent(plan.hit_rate)],
          ["output tokens", number(plan.total.output ?? 0)],
          ["evicted tokens", number(plan.evicted_tokens)],
          ["preemptions", number(plan.preemptions)],
          ["KV pool", plan.kv_tokens ? counted(plan.kv_tokens, "token") : "holds all"],
          ["batch", number(plan.batch)],
          ["steps", number(plan.steps)],
          ["longest chain", counted(plan.depth, "request")],
          ["predicted time", time(plan.predicted_seconds)],
          ["predicted dollars", plan.total.dollars ? dollars(plan.total.dollars) : ""],
        ]),
      );
    }
    if (run) {
      found.push(
        make("h3", {}, run.complete ? "Measured run" : "Measured run, so far"),
        facts([
          ["requests", number(run.request_count)],
          ["prompt tokens", number(run.prompt)],
          ["found in the cache", number(run.cached)],
          ["output tokens", number(run.output)],
          ["prefills", run.prefill_count ? number(run.prefill_count) : ""],
          ["prompt tokens of prefills", run.prefill_count ? number(run.prefill_prompt ?? 0) : ""],
          ["found by prefills", run.prefill_count ? number(run.prefill_cached ?? 0) : ""],
          ["computed, for prefills too", typeof run.computed === "number" ? number(run.computed) : ""],
          ["of these, choices or again", run.beyond ? number(run.beyond) : ""],
          ["of these, not planned", run.elsewhere ? number(run.elsewhere) : ""],
          ["found, not planned", run.elsewhere_cached ? number(run.elsewhere_cached) : ""],
          ["calls of tools", run.tool_count ? number(run.tool_count) : ""],
          ["evicted tokens", run.steps ? number(run.steps.evicted) : ""],
          ["preemptions", run.steps ? number(run.steps.preempted) : ""],
          ["steps", run.steps ? number(run.steps.steps) : ""],
          ["most that ran, waited", run.steps ? `${number(run.steps.most_running)}, ${number(run.steps.most_waiting)}` : ""],
          ["time", time(run.seconds)],
          ["the run", comparedText(plan, run)],
        ]),
      );
    }
    return found;
  }

  /** @param {string} key */
  op(key) {
    const { session } = this;
    const { data } = session;
    const node = session.nodeOf(key);
    if (node === undefined) return [make("p", {}, key)];
    const shown = data.shown(session.stage);
    const mark = data.marks(session.stage).get(key);
    /** @type {[string, string | Node][]} */
    const rows = [
      ["op", node.op || "folded"],
      ["kind", node.kind],
      ["id", node.id ?? ""],
      ["line", node.place ? lineButton(session, node.place) : ""],
      ["group", node.group ?? ""],
      ["ops", node.ops !== undefined && node.ops > 1 ? number(node.ops) : ""],
      ["this pass", mark ? `${mark} it` : ""],
    ];
    /** @type {Node[]} */
    const found = [make("h3", {}, node.label), facts(rows)];
    if (!shown.has(key)) found.push(make("p", { class: "note" }, "The module at this position of the slider does not have this op."));
    const part = session.partOf(key);
    if (part.isGroup) {
      const isOpen = session.open.has(part.id);
      found.push(make("button", { type: "button", onclick: () => { session.toggle(part.id); this.draw(); } }, isOpen ? "Fold" : "Unfold"));
    }
    const call = data.calls.get(key) ?? data.oldCalls.get(key);
    if (call) found.push(make("h4", {}, "Model call"), facts(callFacts(session, call)));
    const prefix = data.prefixes.get(key);
    if (prefix) {
      found.push(
        make("h4", {}, "Shared prefix"),
        facts([
          ["computed once for", prefix.scope === "batch" ? "all instances of a batch" : "the calls of an instance"],
          ["length", tokensText(prefix.tokens)],
          ["with the prefix before", tokensText(prefix.whole)],
        ]),
        ...this.opList("Calls that begin with it", prefix.calls ?? []),
      );
    }
    for (const each of data.view.breaks ?? []) {
      if (each.key === key) found.push(make("h4", {}, "Graph break"), make("p", { class: "prose" }, each.cause), make("p", { class: "prose" }, `Remedy: ${each.remedy}`));
    }
    const remarks = data.remarksOn(node);
    if (remarks.length > 0) {
      const items = remarks.map((remark) => make("li", { class: remark.kind }, `${data.view.stages[remark.stage].name}: `, ...remarkContent(session, remark).slice(-1)));
      found.push(make("h4", {}, "Remarks"), make("ul", {}, ...items));
    }
    if (node.text) found.push(make("h4", {}, "Text"), make("pre", { tabindex: 0 }, make("code", {}, node.text)));
    const inputs = node.inputs ?? [];
    for (const [kind, title] of /** @type {const} */ ([["context", "Continues"], ["value", "Uses"], ["order", "Waits for"]])) {
      found.push(...this.opList(title, inputs.filter((input) => input.kind === kind).map((input) => input.key)));
    }
    const users = [...shown.values()].filter((each) => each.inputs?.some((input) => input.key === key)).map((each) => each.key);
    found.push(...this.opList("Used by", users));
    return found;
  }

  /** @param {string[]} keys */
  several(keys) {
    return [make("h3", {}, counted(keys.length, "op")), ...this.opList("Selected", keys)];
  }

  /**
   * @param {string} title
   * @param {string[]} keys
   * @returns {Node[]}
   */
  opList(title, keys) {
    if (keys.length === 0) return [];
    const { session } = this;
    const items = keys.slice(0, MAX_LISTED).map((key) => {
      const node = session.nodeOf(key);
      const select = () => {
        session.select([key], { reveal: true });
        document.dispatchEvent(new CustomEvent("go-to-selection"));
      };
      return make("li", {}, make("button", { type: "button", class: "link", "data-op": key, onclick: select }, node?.label ?? key));
    });
    const more = keys.length > MAX_LISTED ? [make("li", {}, `${number(keys.length - MAX_LISTED)} more`)] : [];
    return [make("h4", {}, title), make("ul", {}, ...items, ...more)];
  }
}

/**
 * Returns the facts of a call.
 * @param {Session} session
 * @param {lmc.CallCost} call
 * @returns {[string, string | Node][]}
 */
function callFacts(session, call) {
  const { data } = session;
  const old = data.calls.has(call.key) ? data.oldCalls.get(call.key) : undefined;
  /** @type {(of: (call: lmc.CallCost) => string) => string} */
  const both = (of) => changedFrom(of(call), old && of(old));
  return [
    ["wave", both((one) => number(one.wave))],
    ["critical path", both((one) => (one.critical ? "yes" : "no"))],
    ["prompt", both((one) => tokensText(one.prompt))],
    ["computed ahead", both(({ prefilled }) => (prefilled && (prefilled.known || prefilled.texts) ? tokensText(prefilled) : ""))],
    ["output, at most", both((one) => (one.output ? counted(one.output, "token") : ""))],
    ["choices", both((one) => (one.choices ? number(one.choices) : ""))],
    ["constraint", both((one) => one.constraint ?? "")],
    ["calls", call.ops !== undefined && call.ops > 1 ? number(call.ops) : ""],
    ["planned", call.planned ? plannedText(call.planned) : ""],
    ["longest prompt", call.planned?.longest_prompt ? counted(call.planned.longest_prompt, "token") : ""],
    ["measured", call.measured ? measuredText(call.measured) : ""],
  ];
}

/**
 * Returns a list of names and values; those without a value are left out.
 * @param {[string, string | Node][]} rows
 */
function facts(rows) {
  const found = rows.filter(([, value]) => value !== "");
  return make("dl", {}, ...found.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
}
