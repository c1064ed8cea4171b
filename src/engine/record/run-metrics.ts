import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import type { ModelUsage } from '../../providers/models/model-provider.ts';
import type { CompiledTarget } from '../compiled-agent.ts';
import type { CostMicros } from '../pricing.ts';
import type { ToolOutcome } from '../tools/index.ts';
import { conventionalProvider } from './genai-convention.ts';
import type { ExecutedKind } from './run-journal.ts';
import { versionText } from './run-trace.ts';

/** What metrics tell runs apart by. */
interface CountedRun {
  readonly plan: {
    readonly tenantId: string;
    readonly kind: ExecutedKind;
    readonly agent: { readonly name: string; readonly version: number };
    readonly isStreaming: boolean;
  };
  readonly target: CompiledTarget;
}

/** What the engine counts. Times are given in milliseconds and reported in seconds. */
export interface RunMetrics {
  ended(run: CountedRun, status: string, durationMs: number): void;
  firstDelta(run: CountedRun, ms: number): void;
  used(run: CountedRun, target: CompiledTarget, usage: ModelUsage, cost: CostMicros, currency: string | null): void;
  modelCalled(target: CompiledTarget, errorType: string | null, ms: number): void;
  firstPart(target: CompiledTarget, ms: number): void;
  fellBack(target: CompiledTarget, errorType: string): void;
  cacheAsked(target: CompiledTarget, hit: boolean): void;
  /** Null: the agent has no tool of the name that the model gave. */
  toolEnded(toolName: string | null, outcome: ToolOutcome): void;
  recordingFailed(stage: string): void;
  spansDropped(count: number): void;
  /** What became of the turn of a run that held a session. */
  turnEnded(outcome: 'saved' | 'conflict' | 'dropped'): void;
}

const nothing = (): void => undefined;

/** Where nobody reads metrics: not even their attributes are put together. */
const noRunMetrics: RunMetrics = {
  ended: nothing,
  firstDelta: nothing,
  used: nothing,
  modelCalled: nothing,
  firstPart: nothing,
  fellBack: nothing,
  cacheAsked: nothing,
  toolEnded: nothing,
  recordingFailed: nothing,
  spansDropped: nothing,
  turnEnded: nothing,
};

const agentAttributes = ['gen_ai.agent.name', 'gen_ai.agent.version', 'acp.tenant.id'] as const;
const providerAttribute = 'gen_ai.provider.name';
const modelAttribute = 'gen_ai.request.model';
const toolAttribute = 'gen_ai.tool.name';
const operationAttribute = 'gen_ai.operation.name';
const tokenType = 'gen_ai.token.type';

// Bounds that the GenAI conventions ask for: ten milliseconds to 82 seconds, one token to 67 million.
const operationBounds = Array.from({ length: 14 }, (_, power) => 2 ** power / 100);
const tokenBounds = Array.from({ length: 14 }, (_, power) => 4 ** power);

// An id of a model or tool is text of a definition; nobody may make metrics longer than a name is.
const bounded = (text: string): string => (text.length > 128 ? text.slice(0, 128) : text);

/** `active` gives the runs in progress. */
export const createRunMetrics = ({ metrics, settings }: Telemetry, active: () => Iterable<CountedRun>): RunMetrics => {
  if (!metrics.counts) return noRunMetrics;
  const runs = metrics.counter('acp.runs', 'Runs that ended.', '{run}', [
    ...agentAttributes,
    'acp.run.status',
    'acp.run.kind',
    'acp.run.streaming',
  ]);
  const duration = metrics.histogram('acp.run.duration', 'Time from start to end of a run.', 's', [
    ...agentAttributes,
    'acp.run.status',
    'acp.run.kind',
  ]);
  const firstDelta = metrics.histogram(
    'acp.run.time_to_first_delta',
    'Time from the start of a run to its first text.',
    's',
    [...agentAttributes, modelAttribute],
  );
  const cost = metrics.counter('acp.run.cost', 'Cost of model calls with a known price.', '{currency}', [
    ...agentAttributes,
    modelAttribute,
    'acp.cost.currency',
  ]);
  const tokens = metrics.counter('acp.tokens', 'Tokens that providers reported.', '{token}', [
    ...agentAttributes,
    providerAttribute,
    modelAttribute,
    tokenType,
  ]);
  const modelDuration = metrics.histogram('acp.model.duration', 'Time of a model call, waits included.', 's', [
    providerAttribute,
    modelAttribute,
    'error.type',
  ]);
  // The model that a provider says has answered is left out: whoever owns the endpoint could make series without end.
  const operationDuration = metrics.histogram(
    'gen_ai.client.operation.duration',
    'GenAI operation duration.',
    's',
    [operationAttribute, providerAttribute, modelAttribute, 'error.type'],
    operationBounds,
  );
  const tokenUsage = metrics.histogram(
    'gen_ai.client.token.usage',
    'Number of input and output tokens used.',
    '{token}',
    [operationAttribute, providerAttribute, modelAttribute, tokenType],
    tokenBounds,
  );
  const firstPart = metrics.histogram(
    'acp.model.time_to_first_part',
    'Time from a streamed call to its first part.',
    's',
    [providerAttribute, modelAttribute],
  );
  const fallbacks = metrics.counter(
    'acp.model.fallbacks',
    'Calls that went on with another model, by the one that failed.',
    '{call}',
    [providerAttribute, modelAttribute, 'error.type'],
  );
  const cache = metrics.counter('acp.model.cache', 'Calls that the response cache was asked for.', '{call}', [
    modelAttribute,
    'acp.model.cache.result',
  ]);
  const tools = metrics.counter('acp.tool.invocations', 'Tool calls that ended.', '{call}', [
    toolAttribute,
    'acp.tool.outcome',
  ]);
  const toolDuration = metrics.histogram('acp.tool.duration', 'Time of the body of a tool.', 's', [toolAttribute]);
  const truncated = metrics.counter('acp.tool.output_truncated', 'Tool results that were cut.', '{call}', [
    toolAttribute,
  ]);
  const recording = metrics.counter('acp.run.recording_failures', 'Runs whose recording failed.', '{run}', [
    'acp.recording.stage',
  ]);
  const dropped = metrics.counter('acp.spans.dropped', 'Spans of stored traces that were too many.', '{span}', []);
  const turns = metrics.counter('acp.session.turns', 'Turns of sessions that ended.', '{turn}', [
    'acp.session.outcome',
  ]);
  metrics.gauge('acp.run.active', 'Runs in progress.', '{run}', ['acp.run.kind'], () => {
    const counts = { Agent: 0, Eval: 0 };
    for (const { plan } of active()) counts[plan.kind] += 1;
    return Object.entries(counts)
      .filter(([kind, value]) => value > 0 || kind === 'Agent')
      .map(([kind, value]) => ({ value, values: [kind] }));
  });

  const agent = ({ plan }: CountedRun) =>
    [plan.agent.name, settings.includeAgentVersion ? versionText(plan.agent.version) : null, plan.tenantId] as const;
  const model = ({ provider, model: name }: CompiledTarget) => [conventionalProvider(provider), bounded(name)] as const;

  return {
    ended(run, status, durationMs) {
      const kind = run.plan.kind;
      runs.add(1, [...agent(run), status, kind, run.plan.isStreaming]);
      duration.record(durationMs / 1000, [...agent(run), status, kind]);
    },
    firstDelta(run, ms) {
      firstDelta.record(ms / 1000, [...agent(run), bounded(run.target.model)]);
    },
    used(run, target, { inputTokens, outputTokens }, { total }, currency) {
      const called = model(target);
      const count = (tokenCount: number, type: string): void => {
        tokens.add(tokenCount, [...agent(run), ...called, type]);
        tokenUsage.record(tokenCount, ['chat', ...called, type]);
      };
      if (inputTokens !== null) count(inputTokens, 'input');
      if (outputTokens !== null) count(outputTokens, 'output');
      if (total !== null) cost.add(total / 1_000_000, [...agent(run), bounded(target.model), currency]);
    },
    modelCalled(target, errorType, ms) {
      const called = model(target);
      modelDuration.record(ms / 1000, [...called, errorType]);
      operationDuration.record(ms / 1000, ['chat', ...called, errorType]);
    },
    firstPart: (target, ms) => firstPart.record(ms / 1000, model(target)),
    fellBack: (target, errorType) => fallbacks.add(1, [...model(target), errorType]),
    cacheAsked: (target, hit) => cache.add(1, [bounded(target.model), hit ? 'hit' : 'miss']),
    toolEnded(toolName, { status, durationMs, truncation }) {
      // Names that a model has made up would push those of tools out of the metric.
      const name = toolName === null ? '_OTHER' : bounded(toolName);
      tools.add(1, [name, status]);
      if (durationMs !== null) toolDuration.record(durationMs / 1000, [name]);
      if (truncation !== null) truncated.add(1, [name]);
    },
    recordingFailed: (stage) => recording.add(1, [stage]),
    spansDropped(count) {
      if (count > 0) dropped.add(count, []);
    },
    turnEnded: (outcome) => turns.add(1, [outcome]),
  };
};
