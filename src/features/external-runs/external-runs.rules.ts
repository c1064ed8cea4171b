import { createHash } from 'node:crypto';
import type { ModelFinishReason, ModelUsage } from '../../providers/models/model-provider.ts';
import {
  agentNameOf,
  conversationOf,
  type ExternalToolCall,
  errorTypeOf,
  finishReasonOf,
  inputTextOf,
  isEmbedding,
  modelOf,
  outputTextOf,
  providerOf,
  requestedModelOf,
  roleOf,
  type SpanRole,
  toolCallOf,
  unnamedError,
  usageOf,
} from './genai-spans.rules.ts';
import type { ReceivedSpan } from './received-spans.ts';

/** A call of a model that an agent elsewhere has made. */
export interface ExternalModelCall {
  readonly provider: string | null;
  readonly model: string | null;
  /** What was asked for: an answer names the version of it, such as by a date. */
  readonly requestedModel: string | null;
  readonly isEmbedding: boolean;
  readonly isFailed: boolean;
  readonly usage: ModelUsage;
}

/** An agent's work that ran elsewhere. Times are epoch milliseconds. */
export interface ExternalRun {
  readonly id: string;
  readonly spanId: string;
  readonly agentName: string;
  readonly parent: ExternalRun | null;
  readonly depth: number;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly calls: readonly ExternalModelCall[];
  readonly tools: readonly (ExternalToolCall & {
    readonly spanId: string;
    readonly startedAt: number;
    readonly endedAt: number;
    /** Null: it succeeded. */
    readonly errorType: string | null;
  })[];
  readonly input: string | null;
  readonly output: string | null;
  readonly finishReason: ModelFinishReason;
  /** Null: it completed. */
  readonly errorType: string | null;
  readonly conversationId: string | null;
}

/** Runs of one part of a trace, the root first and each parent before its children. */
export interface ExternalTree {
  readonly traceId: string;
  readonly serviceName: string | null;
  readonly runs: readonly [ExternalRun, ...ExternalRun[]];
}

// Deeper than agents call each other anywhere; what lies below belongs to the run above.
const maxDepth = 64;

/** Name of the agent that a run of a span is, one that agents of this service could have as well. */
export const runNameOf = ({
  attributes,
  serviceName,
  name: spanName,
}: Pick<ReceivedSpan, 'attributes' | 'serviceName' | 'name'>): string => {
  const name = (agentNameOf(attributes) ?? serviceName ?? spanName)
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '');
  return name === '' ? 'external' : name.slice(0, 128);
};

/**
 * UUID version 7 of when the span began, with the depth of the run where others have a counter, so that a parent sorts
 * before its children. The rest is a hash: spans that are sent again make the same ids.
 */
const externalRunId = (tenantId: string, traceId: string, spanId: string, startedAt: number, depth: number) => {
  const hash = createHash('sha256').update(`${tenantId}\n${traceId}\n${spanId}`).digest('hex');
  const time = startedAt.toString(16).padStart(12, '0');
  const order = depth.toString(16).padStart(3, '0');
  return `${time.slice(0, 8)}-${time.slice(8, 12)}-7${order}-8${hash.slice(0, 3)}-${hash.slice(3, 15)}`;
};

const errorOf = ({ attributes, isError }: ReceivedSpan): string | null => {
  const type = errorTypeOf(attributes);
  return type ?? (isError ? unnamedError : null);
};

type MutableRun = { -readonly [K in keyof ExternalRun]: ExternalRun[K] } & {
  calls: ExternalModelCall[];
  tools: ExternalRun['tools'][number][];
  parent: MutableRun | null;
};

const inOrder = (a: ReceivedSpan, b: ReceivedSpan): number =>
  a.startedAt - b.startedAt || (a.spanId < b.spanId ? -1 : 1);

/** The run of a span, without what lies below it. */
const openRun = (tenantId: string, span: ReceivedSpan, parent: MutableRun | null): MutableRun => {
  const depth = parent === null ? 0 : parent.depth + 1;
  const { attributes, startedAt, endedAt, traceId, spanId } = span;
  return {
    id: externalRunId(tenantId, traceId, spanId, startedAt, depth),
    spanId,
    agentName: runNameOf(span),
    parent,
    depth,
    startedAt,
    endedAt,
    calls: [],
    tools: [],
    input: inputTextOf(attributes),
    output: outputTextOf(attributes),
    finishReason: finishReasonOf(attributes),
    errorType: errorOf(span),
    conversationId: conversationOf(attributes),
  };
};

const modelCallOf = (span: ReceivedSpan): ExternalModelCall => {
  const { attributes } = span;
  return {
    provider: providerOf(attributes),
    model: modelOf(attributes),
    requestedModel: requestedModelOf(attributes),
    isEmbedding: isEmbedding(attributes),
    isFailed: errorOf(span) !== null,
    usage: usageOf(attributes),
  };
};

const withoutUsage = (call: ExternalModelCall): ExternalModelCall => ({
  ...call,
  usage: usageOf({}),
});

const hasUsage = ({ calls }: Pick<ExternalRun, 'calls'>): boolean =>
  calls.some(({ usage }) => usage.totalTokens !== null);

type MutableTree = [MutableRun, ...MutableRun[]];

/** Where the work of a span belongs. */
interface Place {
  readonly run: MutableRun | null;
  readonly tree: MutableTree | null;
  /** A call of a model above has told the tokens. */
  readonly isCounted: boolean;
}

/** A workflow is a run of its own as an agent is, where there is one in it or a call of a model. */
const isAgentLike = (role: SpanRole): boolean => role === 'Agent' || role === 'Workflow';

const nowhere: Place = { run: null, tree: null, isCounted: false };

/** Runs of one part as its spans are gone through from above; what has no agent above it is a run of the root. */
const createAssembly = (tenantId: string, root: ReceivedSpan) => {
  const trees: MutableTree[] = [];
  const saidByAgent = new Set<MutableRun>();
  /** Those with tokens in a run below them. */
  const toldBelow = new Set<MutableRun>();
  let ofRoot: Place | null = null;

  const open = (span: ReceivedSpan, { run: parent, tree: around }: Place): Place => {
    const run = openRun(tenantId, span, parent);
    if (run.output !== null) saidByAgent.add(run);
    const tree: MutableTree = around ?? [run];
    if (around === null) trees.push(tree);
    else around.push(run);
    return { run, tree, isCounted: false };
  };

  return {
    trees,
    placeOf(span: ReceivedSpan, around: Place): Place {
      const role = roleOf(span);
      if (isAgentLike(role) && (around.run?.depth ?? -1) < maxDepth) return open(span, around);
      if (role === 'Other' || around.run !== null) return around;
      ofRoot ??= open(root, nowhere);
      return ofRoot;
    },
    /** True: the tokens of the call, or of one above it, are known. */
    addCall(span: ReceivedSpan, { run, isCounted }: Place): boolean {
      if (run === null) return isCounted;
      const { attributes } = span;
      const call = modelCallOf(span);
      if (!isCounted) run.calls.push(call);
      run.input ??= inputTextOf(attributes);
      run.conversationId ??= conversationOf(attributes);
      const said = outputTextOf(attributes);
      if (said !== null && !saidByAgent.has(run)) [run.output, run.finishReason] = [said, finishReasonOf(attributes)];
      return isCounted || call.usage.totalTokens !== null;
    },
    addTool(span: ReceivedSpan, { run }: Place): void {
      const { spanId, startedAt, endedAt, attributes } = span;
      run?.tools.push({ ...toolCallOf(attributes), spanId, startedAt, endedAt, errorType: errorOf(span) });
    },
    /** An agent, after all that is below it. Its own use counts where no calls of models are here. */
    close(span: ReceivedSpan, { run }: Place): void {
      if (run === null) return;
      if (run.calls.length === 0)
        run.calls.push(toldBelow.has(run) ? withoutUsage(modelCallOf(span)) : modelCallOf(span));
      if (run.spanId !== span.spanId || run.parent === null) return;
      if (toldBelow.has(run) || hasUsage(run)) toldBelow.add(run.parent);
    },
  };
};

/** A span whose children are being gone through. */
interface OpenSpan {
  readonly span: ReceivedSpan;
  readonly place: Place;
  readonly children: Iterator<ReceivedSpan>;
}

/**
 * What the spans of one part of a trace say of agents. Each `invoke_agent` or `invoke_workflow` is a run, one inside another its child. Calls of
 * models and tools belong to the nearest agent above them; those without one are a run of the root. Tokens count once, where
 * two libraries tell of one call or an agent sums up what it called. Empty: nothing here is about an agent or a model.
 */
export const assembleRuns = (
  tenantId: string,
  root: ReceivedSpan,
  spans: readonly ReceivedSpan[],
): readonly ExternalTree[] => {
  if (!spans.some((span) => roleOf(span) === 'Agent' || roleOf(span) === 'ModelCall')) return [];
  const children = new Map<string, ReceivedSpan[]>();
  for (const span of [...spans].sort(inOrder))
    if (span !== root && span.parentSpanId !== null)
      children.getOrInsertComputed(span.parentSpanId, () => []).push(span);
  const assembly = createAssembly(tenantId, root);
  const opened = (span: ReceivedSpan, around: Place): OpenSpan => {
    const role = roleOf(span);
    const place = assembly.placeOf(span, around);
    const isCounted = role === 'ModelCall' ? assembly.addCall(span, place) : place.isCounted;
    if (role === 'Tool') assembly.addTool(span, place);
    return { span, place: { ...place, isCounted }, children: (children.get(span.spanId) ?? []).values() };
  };
  // A list in place of recursion: each span may be the parent of the next.
  const above = [opened(root, nowhere)];
  for (let last = above.at(-1); last !== undefined; last = above.at(-1)) {
    const { span, place } = last;
    const { value: child, done } = last.children.next();
    if (done !== true) {
      above.push(opened(child, place));
      continue;
    }
    above.pop();
    if (isAgentLike(roleOf(span))) assembly.close(span, place);
  }
  return assembly.trees.map((runs) => ({ traceId: root.traceId, serviceName: root.serviceName, runs }));
};
