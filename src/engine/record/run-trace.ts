import { type AttributeInput, Span, type SpanKind } from '../../core/telemetry/span.ts';
import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import { newTraceId, type TraceHeaders, type TraceParent, traceHeaders } from '../../core/telemetry/trace-context.ts';
import type { CompiledTarget } from '../compiled-agent.ts';
import { conventionalProvider } from './genai-convention.ts';
import type { ExecutedKind } from './run-journal.ts';

/** Where the trace of a run comes from. */
export interface TraceOrigin {
  /** Span of the request that started the run: the run is part of that trace. */
  readonly parent: TraceParent | null;
  /** Span that queued the run, which then has a trace of its own. */
  readonly link: TraceParent | null;
}

/** What a trace says of a run, and where it hangs. */
export interface TracedRun {
  readonly id: string;
  readonly tenantId: string;
  readonly kind: ExecutedKind;
  readonly agent: {
    readonly name: string;
    readonly version: number | null;
    readonly model: Pick<CompiledTarget, 'provider' | 'model'>;
  };
  readonly sessionId: string | null;
  readonly isStreaming: boolean;
  readonly attachments: readonly unknown[];
  readonly parent: { readonly id: string; readonly depth: number; readonly trace: RunTrace | null } | null;
  readonly parentCallId: string | null;
  readonly trace: TraceOrigin | null;
}

/** The spans of a run tree until its root closes, in the order of their starts. */
interface TreeSpans {
  readonly telemetry: Telemetry;
  /** Null: nothing of this tree will be stored. */
  readonly spans: Span[] | null;
  dropped: number;
}

/** The trace of one run. Children share the tree and the trace id of their root. */
export class RunTrace {
  /** The run's own span. */
  readonly span: Span;
  readonly tenantId: string;
  readonly #tree: TreeSpans;
  #opened = 1;
  /** Span of the newest model call: what is said of its answer belongs below it. Null: the answer came from the cache. */
  modelCall: Span | null = null;
  /** Spans of calls that child runs may begin in, by tool call id. */
  #calls: Map<string, Span> | null = null;

  private constructor(tree: TreeSpans, span: Span, tenantId: string) {
    this.#tree = tree;
    this.span = span;
    this.tenantId = tenantId;
    tree.spans?.push(span);
  }

  /** Null where observability is off. */
  static start(telemetry: Telemetry, plan: TracedRun): RunTrace | null {
    if (!telemetry.settings.enabled) return null;
    if (plan.parent !== null) return RunTrace.#child(plan, plan.parent.trace);
    const parent = plan.trace?.parent ?? null;
    const traceId = parent?.traceId ?? newTraceId();
    // Without an exporter of our own the caller's decision is passed on.
    const sampled = telemetry.export?.samples(traceId, parent) ?? parent?.sampled ?? true;
    const span = new Span('acp.run', 'Internal', { ...parent, traceId, sampled }, runAttributes(telemetry, plan));
    const link = plan.trace?.link ?? null;
    if (link !== null) {
      span.links = [link];
      // Stored traces have no links: what was linked to is an attribute there.
      span.set({ 'acp.link.trace_id': link.traceId, 'acp.link.span_id': link.spanId });
    }
    // A failure is known at the end only, so that nearly every tree is kept until then.
    const keeps = telemetry.stores(traceId, true) || telemetry.stores(traceId, false);
    return new RunTrace({ telemetry, spans: keeps ? [] : null, dropped: 0 }, span, plan.tenantId);
  }

  static #child(plan: TracedRun, parent: RunTrace | null): RunTrace | null {
    if (parent === null) return null;
    const tree = parent.#tree;
    const from = parent.#calls?.get(plan.parentCallId ?? '') ?? parent.span;
    const span = new Span('acp.run', 'Internal', from, runAttributes(tree.telemetry, plan));
    return new RunTrace(tree, span, plan.tenantId);
  }

  /** A span below the run's own, or below another one. */
  open(name: string, kind: SpanKind, attributes: AttributeInput, parent: Span = this.span): Span {
    const span = new Span(name, kind, parent, attributes);
    const tree = this.#tree;
    this.#opened += 1;
    if (tree.spans !== null)
      if (this.#opened <= tree.telemetry.settings.maxSpansPerRun) tree.spans.push(span);
      else tree.dropped += 1;
    return span;
  }

  /** Ends a span; `errorType` marks it as failed. */
  close(span: Span, errorType: string | null = null): void {
    span.end(errorType);
    this.#tree.telemetry.ended(span);
  }

  /** A child run that the call starts belongs below its span. */
  bindCall(toolCallId: string, span: Span): void {
    this.#calls ??= new Map();
    this.#calls.set(toolCallId, span);
  }

  /** The span of a call in progress. */
  ofCall(toolCallId: string): Span | undefined {
    return this.#calls?.get(toolCallId);
  }

  /** The spans to store once the root has closed; null when the tree is not sampled. `dropped` were too many. */
  stored(failed: boolean): { readonly spans: readonly Span[]; readonly dropped: number } | null {
    const { telemetry, spans, dropped } = this.#tree;
    return spans !== null && telemetry.stores(this.span.traceId, failed) ? { spans, dropped } : null;
  }
}

/** The headers that make the receiver's work part of the trace. */
export const traceHeadersOf = (span: Span | null): Partial<TraceHeaders> => (span === null ? {} : traceHeaders(span));

const runAttributes = ({ settings }: Telemetry, plan: TracedRun): AttributeInput => ({
  'gen_ai.operation.name': 'invoke_agent',
  'gen_ai.agent.name': plan.agent.name,
  'gen_ai.agent.version': settings.includeAgentVersion ? versionText(plan.agent.version) : null,
  'gen_ai.provider.name': conventionalProvider(plan.agent.model.provider),
  'gen_ai.request.model': plan.agent.model.model,
  'gen_ai.conversation.id': plan.sessionId,
  'acp.tenant.id': plan.tenantId,
  'acp.run.id': plan.id,
  'acp.run.parent_id': plan.parent?.id,
  'acp.run.depth': plan.parent === null ? 0 : plan.parent.depth + 1,
  'acp.run.kind': plan.kind,
  'acp.run.streaming': plan.isStreaming,
  'acp.run.attachments': plan.attachments.length === 0 ? null : plan.attachments.length,
});

/** The convention has text here. */
export const versionText = (version: number | null): string | null => (version === null ? null : String(version));
