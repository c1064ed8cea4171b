import type { RunAttribution } from '../../core/caller/attribution.ts';
import type { Statement } from '../../db/statement.ts';
import { newMessage } from '../../engine/context/index.ts';
import { type CostMicros, decimal, type PriceList, publicCost } from '../../engine/pricing.ts';
import {
  encodePack,
  eventPayload,
  type LoggedEvent,
  type LoggedRunEnd,
  type RecordingSettings,
  type RunJournal,
  recordedPayload,
} from '../../engine/record/index.ts';
import { RunFailure, storedError } from '../../engine/run-failure.ts';
import type { ModelProviders, ModelUsage } from '../../providers/models/index.ts';
import { createExternalModels, shortName } from './external-models.ts';
import type { ExternalRun, ExternalTree } from './external-runs.rules.ts';

export interface ExternalRunRecordDeps {
  readonly journal: RunJournal;
  readonly prices: PriceList;
  readonly providers: Pick<ModelProviders, 'list'>;
  readonly recording: RecordingSettings;
  readonly newId: () => string;
}

/** For whom the runs are, as the credential says that sent them. */
export interface ExternalOwner extends RunAttribution {
  readonly ownerId: string | null;
}

type TimedEvent = readonly [at: number, type: string, members: Readonly<Record<string, unknown>>];

const failureOf = (errorType: string): RunFailure =>
  new RunFailure('Unknown', errorType, 'The agent, which ran elsewhere, reported an error.');

/** The rows, log and tool calls of runs that another program has executed, all of them closed. */
export const createExternalRunRecord = ({ journal, prices, providers, recording, newId }: ExternalRunRecordDeps) => {
  const modelsOf = createExternalModels(prices, providers);

  const toolOf = (tenantId: string, run: ExternalRun, tool: ExternalRun['tools'][number], order: number) => {
    const given = recordedPayload(tool.arguments ?? 'null', recording);
    const toolCallId = shortName(tool.callId ?? tool.spanId);
    const toolName = shortName(tool.toolName ?? 'tool');
    const error = tool.errorType === null ? null : `Tool failed: ${tool.errorType}`;
    const result = error !== null || tool.result === null ? null : recordedPayload(tool.result, recording);
    const durationMs = tool.endedAt - tool.startedAt;
    const statements = journal.toolAnswered(
      {
        ...{ id: newId(), tenantId, runId: run.id, toolCallId, toolName, source: null, effect: 'External' },
        ...{ idempotencyKey: `${run.id}:${tool.spanId}`, arguments: given.text },
        ...{ argumentsTruncated: given.truncated, createdAt: tool.startedAt },
      },
      {
        ...{ result: result?.text ?? null, truncated: result?.truncated ?? false, error },
        ...{ succeeded: error === null, authorizationDenied: false, timedOut: false, durationMs, usage: null },
        ...{ settledAt: tool.endedAt, order },
      },
    );
    const call = { toolCallId, toolName };
    const invoked = { ...call, result: result === null ? null : eventPayload(result), durationMs, usage: null };
    const failed = { ...call, error, durationMs, timedOut: false, authorizationDenied: false };
    const events: TimedEvent[] = [
      [tool.startedAt, 'tool.invoking', { ...call, source: null, arguments: eventPayload(given) }],
      error === null ? [tool.endedAt, 'tool.invoked', invoked] : [tool.endedAt, 'tool.failed', failed],
    ];
    return { statements, events };
  };

  const toolsOf = (tenantId: string, run: ExternalRun) =>
    [...run.tools].sort((a, b) => a.endedAt - b.endedAt).map((tool, order) => toolOf(tenantId, run, tool, order));

  const eventsOf = (
    run: ExternalRun,
    children: readonly ExternalRun[],
    tools: readonly TimedEvent[],
    model: { readonly modelProvider: string | null; readonly modelId: string | null },
    spent: { readonly usage: ModelUsage | null; readonly cost: CostMicros | null },
  ): readonly LoggedEvent[] => {
    const { startedAt, endedAt, agentName } = run;
    const durationMs = endedAt - startedAt;
    const cost = spent.cost === null ? null : publicCost(spent.cost, prices.currency);
    const started = {
      ...{ agentName, agentVersion: null, kind: 'External', attempt: 1, sessionId: null, ...model },
      ...{ isStreaming: false, parentRunId: run.parent?.id ?? null, continuedFromRunId: null, replayOfRunId: null },
    };
    const between: TimedEvent[] = [
      ...tools,
      ...children.flatMap((child): TimedEvent[] => [
        [
          child.startedAt,
          'child.started',
          { childRunId: child.id, agentName: child.agentName, depth: child.depth, toolCallId: null },
        ],
        [
          child.endedAt,
          'child.completed',
          {
            ...{ childRunId: child.id, agentName: child.agentName },
            ...{ status: child.errorType === null ? 'Completed' : 'Failed' },
            ...{ durationMs: child.endedAt - child.startedAt, usage: modelsOf(child).usage },
          },
        ],
      ]),
    ];
    between.sort(([a], [b]) => a - b);
    const { output, finishReason } = run;
    const said: TimedEvent[] =
      output === null ? [] : [[endedAt, 'message.completed', { messageId: newId(), text: output, finishReason }]];
    const last: TimedEvent =
      run.errorType === null
        ? [
            endedAt,
            'run.completed',
            { output: output ?? '', structuredOutput: null, finishReason, usage: spent.usage, cost, durationMs },
          ]
        : [
            endedAt,
            'run.failed',
            { error: storedError(failureOf(run.errorType)), usage: spent.usage, cost, durationMs },
          ];
    const all: TimedEvent[] = [[startedAt, 'run.started', started], ...between, ...said, last];
    return all.map(([timestamp, type, members], sequence) => {
      const text = JSON.stringify(members);
      return { sequence, type, timestamp, members: text, stored: text };
    });
  };

  const inputOf = ({ id, input, startedAt }: ExternalRun) =>
    input === null || !recording.recordRunInput
      ? null
      : [newMessage(id, newId(), 'User', startedAt, [{ type: 'Text', text: input }])];

  /** The writes of all runs of a tree, to be made in one unit. */
  const statements = (
    tenantId: string,
    owner: ExternalOwner,
    labels: Readonly<Record<string, string>>,
    { runs }: ExternalTree,
  ): readonly Statement[] => {
    const [root] = runs;
    const spent = runs.map((run) => ({ run, ...modelsOf(run) }));
    const tree = {
      tokens: spent.reduce((sum, { usage }) => sum + (usage?.totalTokens ?? 0), 0),
      costMicros: spent.reduce((sum, { cost }) => sum + (cost?.total ?? 0), 0),
    };
    const opened: Statement[] = [];
    const closed: (readonly Statement[])[] = [];
    const childrenOf = Map.groupBy(runs, ({ parent }) => parent);
    for (const { run, model, usage, cost, shares } of spent) {
      const rootRunId = run === root ? null : root.id;
      const tools = toolsOf(tenantId, run);
      const children = childrenOf.get(run) ?? [];
      const toolEvents = tools.flatMap(({ events }) => events);
      const events = eventsOf(run, children, toolEvents, model, { usage, cost });
      const { errorType } = run;
      opened.push(
        ...journal.opened({
          ...{ id: run.id, tenantId, kind: 'External', agentName: run.agentName, agentVersion: null },
          ...{ status: 'Running', ...model, isStreaming: false, jobId: null, sessionId: null },
          ...{ ...owner, labels, parentRunId: run.parent?.id ?? null, rootRunId, continuedFromRunId: null },
          ...{ depth: run.depth, createdAt: run.startedAt, startedAt: run.startedAt },
          input: inputOf(run),
        }),
        ...tools.flatMap(({ statements }) => statements),
        journal.packed(tenantId, run.id, 0, events.length - 1, encodePack(events)),
      );
      closed.push(
        journal.closed({
          ...{ id: run.id, tenantId, status: errorType === null ? 'Completed' : 'Failed' },
          ...{ completedAt: run.endedAt, agentVersion: null, ...model, usage, cost, shares },
          ...{ error: errorType === null ? null : storedError(failureOf(errorType)) },
          ...{ eventCount: events.length, rootRunId, tree: run === root ? tree : null },
        }),
      );
    }
    // The root closes last: its end says what its whole tree has used.
    return [...opened, ...closed.reverse().flat()];
  };

  /** The log lines about the ends of the runs of a stored tree. */
  const ends = (tenantId: string, { runs }: ExternalTree): readonly LoggedRunEnd[] =>
    runs.map((run) => {
      const { usage, cost } = modelsOf(run);
      const error = run.errorType === null ? null : storedError(failureOf(run.errorType));
      return {
        ...{ runId: run.id, tenantId, agent: run.agentName, kind: 'External', parentRunId: run.parent?.id ?? null },
        ...{ status: error === null ? 'Completed' : 'Failed', durationMs: run.endedAt - run.startedAt, error },
        ...{ inputTokens: usage?.inputTokens ?? null, outputTokens: usage?.outputTokens ?? null },
        cost: decimal(cost?.total ?? null),
      };
    });

  return { statements, ends };
};

export type ExternalRunRecord = ReturnType<typeof createExternalRunRecord>;
