// Written by `python -m tests.report.golden` from the models of lmc/report/model.py.
declare namespace lmc {
  interface Break {
    cause: string;
    remedy: string;
    place?: Place | null;
    key?: string | null;
  }

  interface Call {
    key: string;
    id: string;
    wave: number;
    prompt: Tokens;
    prefilled?: Tokens;
    output?: number;
    choices?: number;
    constraint?: string | null;
    critical?: boolean;
    ops?: number;
    planned?: Planned | null;
    measured?: Measured | null;
  }

  interface ConstraintInfo {
    name: string;
    kind: string;
    text: string;
    examples?: string[];
  }

  interface Hint {
    message: string;
    place?: Place | null;
  }

  interface Hunk {
    at: number;
    removed?: number;
    added?: string[];
  }

  interface Input {
    key: string;
    kind: "context" | "value" | "order";
  }

  interface LineCost {
    place: Place;
    calls: number;
    prompt: Tokens;
    output?: number;
    planned?: Planned | null;
    measured?: Measured | null;
  }

  interface Measured {
    requests: number;
    prompt: number;
    cached: number;
    output: number;
    seconds: number;
    p50?: number | null;
    longest?: number;
  }

  interface Node {
    key: string;
    op: string;
    kind: "call" | "text" | "prefix" | "tool" | "python" | "control" | "hint" | "break" | "end" | "folded";
    label: string;
    text?: string;
    id?: string | null;
    place?: Place | null;
    parent?: string | null;
    region?: string | null;
    inputs?: Input[];
    wave?: number | null;
    group?: string | null;
    ops?: number;
  }

  interface Place {
    source: number;
    line: number;
  }

  interface Plan {
    rows: Row[];
    row_count: number;
    order: string;
    block: number;
    characters: number;
    kv_tokens?: number | null;
    batch: number;
    prefill_tokens: number;
    total: Planned;
    hit_rate: number;
    evicted_tokens: number;
    preemptions: number;
    steps: number;
    waves: number;
    predicted_seconds: number;
    requests: Request[];
    prompts: PromptNode[];
  }

  interface Planned {
    requests?: number;
    prompt?: number;
    cached?: number;
    output?: number;
    longest_prompt?: number;
  }

  interface Prefix {
    key: string;
    scope: "instance" | "batch";
    tokens: Tokens;
    whole: Tokens;
    calls?: string[];
  }

  interface Program {
    name: string;
    parameters: Record<string, string>;
    ops: number;
    model_calls: number;
    waves: number;
    critical_calls: number;
    batch_prefixes?: number;
    instance_prefixes?: number;
    saved_tokens?: number;
    saved_calls?: number;
    saved_steps?: number;
    captured_ops?: number | null;
    target?: string | null;
    level?: string | null;
    host_functions?: Record<string, string>;
  }

  interface PromptNode {
    parent?: number | null;
    text?: string;
    tokens: number;
    requests: number;
    computed?: number;
    cached?: number;
    recomputed?: number;
    generated?: number;
    ends?: Record<string, number>;
    folded?: number;
  }

  interface Remark {
    stage: number;
    kind: "applied" | "missed";
    message: string;
    text: string;
    place?: Place | null;
    saved_tokens?: number;
    saved_calls?: number;
    saved_steps?: number;
  }

  interface Request {
    key: string;
    row: number;
    wave: number;
    ready: number;
    started: number;
    first_token: number;
    ended: number;
    prompt: number;
    cached?: number;
    output?: number;
    prefix: number;
  }

  interface Row {
    row: number;
    shared?: number;
  }

  interface Source {
    file: string;
    lines?: string[];
    first?: number;
  }

  interface Stage {
    name: string;
    ops: number;
    calls: number;
    added?: Node[];
    changed?: Node[];
    removed?: string[];
    order?: string[] | null;
    fans?: string[][] | null;
    text?: Hunk[];
    lines?: number[] | null;
  }

  interface Tokens {
    known?: number;
    texts?: number;
  }

  interface View {
    format: "lmc-view";
    version: 1;
    program: Program;
    sources: Source[];
    stages: Stage[];
    remarks?: Remark[];
    breaks?: Break[];
    hints?: Hint[];
    calls?: Call[];
    lines?: LineCost[];
    critical_path?: string[];
    prefixes?: Prefix[];
    constraints?: ConstraintInfo[];
    plan?: Plan | null;
    comparison?: boolean;
    redacted?: boolean;
    notices?: string[];
  }
}

