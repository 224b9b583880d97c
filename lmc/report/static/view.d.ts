// Written by `python -m tests.report.golden` from the models of lmc/report/model.py.
declare namespace lmc {
  interface BatchPlan {
    rows: PlannedRow[];
    row_count: number;
    order: string;
    block: number;
    characters: number;
    kv_tokens?: number | null;
    batch: number;
    prefill_tokens: number;
    total: PlannedCost;
    hit_rate: number;
    evicted_tokens: number;
    preemptions: number;
    steps: number;
    depth: number;
    predicted_seconds: number;
    requests: PlannedRequest[];
    prompts: PromptNode[];
  }

  interface BreakView {
    cause: string;
    remedy: string;
    place?: SourceLine | null;
    key?: string | null;
  }

  interface CallCost {
    key: string;
    id: string;
    wave: number;
    prompt: TokenCount;
    prefilled?: TokenCount;
    output?: number;
    choices?: number;
    constraint?: string | null;
    critical?: boolean;
    ops?: number;
    planned?: PlannedCost | null;
    measured?: MeasuredCost | null;
  }

  interface CompiledView {
    format: "lmc-view";
    version: 1;
    program: ProgramView;
    sources: SourceFile[];
    stages: StageView[];
    remarks?: RemarkView[];
    breaks?: BreakView[];
    hints?: Hint[];
    calls?: CallCost[];
    lines?: LineCost[];
    critical_path?: string[];
    prefixes?: Prefix[];
    constraints?: ConstraintInfo[];
    plan?: BatchPlan | null;
    timeline?: MeasuredRun | null;
    comparison?: boolean;
    old?: OldModule | null;
    redacted?: boolean;
    notices?: string[];
  }

  interface ConstraintInfo {
    name: string;
    kind: string;
    text: string;
    examples?: string[];
  }

  interface Divergence {
    seconds: number;
    id: string;
    row?: number | null;
    reason: string;
  }

  interface Hint {
    message: string;
    place?: SourceLine | null;
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
    place: SourceLine;
    calls: number;
    prompt: TokenCount;
    output?: number;
    planned?: PlannedCost | null;
    measured?: MeasuredCost | null;
  }

  interface MeasuredCost {
    requests: number;
    prompt: number;
    cached: number;
    output: number;
    seconds: number;
    p50?: number | null;
    p50_seconds?: number | null;
    longest?: number;
    dollars?: number | null;
  }

  interface MeasuredPart {
    computed?: number;
    cached?: number;
    recomputed?: number;
  }

  interface MeasuredRun {
    request_count: number;
    prompt: number;
    cached: number;
    output: number;
    prefill_count?: number;
    prefill_prompt?: number;
    prefill_cached?: number;
    computed?: number | null;
    beyond?: number;
    elsewhere?: number;
    elsewhere_cached?: number;
    divergence?: Divergence | null;
    seconds: number;
    complete?: boolean;
    requests?: RunRequest[];
    tool_count?: number;
    tools?: RunTool[];
    steps?: RunSteps | null;
  }

  interface OldModule {
    program: ProgramView;
    calls?: CallCost[];
  }

  interface OpNode {
    key: string;
    op: string;
    kind: "call" | "text" | "prefix" | "tool" | "python" | "control" | "hint" | "break" | "end" | "folded";
    label: string;
    text?: string;
    id?: string | null;
    place?: SourceLine | null;
    parent?: string | null;
    region?: string | null;
    inputs?: Input[];
    wave?: number | null;
    group?: string | null;
    ops?: number;
  }

  interface PlannedCost {
    requests?: number;
    prompt?: number;
    cached?: number;
    output?: number;
    longest_prompt?: number;
    dollars?: number | null;
  }

  interface PlannedRequest {
    key: string;
    row: number;
    depth: number;
    ready: number;
    started: number;
    first_token: number;
    ended: number;
    prompt: number;
    cached?: number;
    output?: number;
    prefix: number;
  }

  interface PlannedRow {
    row: number;
    shared?: number;
  }

  interface Prefix {
    key: string;
    scope: "instance" | "batch";
    tokens: TokenCount;
    whole: TokenCount;
    outer?: string | null;
    calls?: string[];
  }

  interface ProgramView {
    name: string;
    parameters: Record<string, string>;
    ops: number;
    model_calls: number;
    waves: number;
    critical_calls?: number | null;
    batch_prefixes?: number | null;
    instance_prefixes?: number | null;
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
    evicted?: number;
    generated?: number;
    ends?: Record<string, number>;
    folded?: number;
    measured?: MeasuredPart | null;
  }

  interface RemarkView {
    stage: number;
    kind: "applied" | "missed";
    message: string;
    text: string;
    op?: string | null;
    place?: SourceLine | null;
    saved_tokens?: number;
    saved_calls?: number;
    saved_steps?: number;
  }

  interface RunRequest {
    key?: string | null;
    id: string;
    kind: "generate" | "score" | "prefill";
    row?: number | null;
    sample?: number;
    wave?: number | null;
    ready: number;
    submitted: number;
    admitted?: number | null;
    first_token?: number | null;
    ended: number;
    prompt?: number;
    cached?: number;
    computed?: number | null;
    output?: number;
    wait?: "limit" | "batch" | "memory" | "budget" | null;
    finish?: "stop" | "length" | "eos" | null;
    error?: string | null;
    unfinished?: boolean;
  }

  interface RunSteps {
    steps: number;
    rows: number;
    prefill: number;
    found: number;
    evicted: number;
    preempted: number;
    most_running: number;
    most_waiting: number;
    seconds: number;
  }

  interface RunTool {
    key?: string | null;
    name: string;
    row?: number | null;
    started: number;
    ended: number;
    early?: boolean;
    error?: string | null;
    unfinished?: boolean;
  }

  interface SourceFile {
    file: string;
    lines?: string[];
    first?: number;
  }

  interface SourceLine {
    source: number;
    line: number;
    column?: number | null;
  }

  interface StageView {
    name: string;
    ops: number;
    calls: number;
    added?: OpNode[];
    changed?: OpNode[];
    removed?: string[];
    order?: string[] | null;
    fans?: string[][] | null;
    text?: Hunk[];
    lines?: number[] | null;
  }

  interface TokenCount {
    known?: number;
    texts?: number;
  }
}
