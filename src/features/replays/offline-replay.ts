import { AcpError } from '../../contract/errors.ts';
import type { RunPlan } from '../../engine/active-run.ts';
import type { CompiledAgent } from '../../engine/compiled-agent.ts';
import { attachmentsIn, type RecordedDecisions, recordedTools, type TurnResume } from '../../engine/context/index.ts';
import { textHash } from '../../engine/record/index.ts';
import type { ModelTool } from '../../providers/models/model-provider.ts';
import { type AgentContent, compileOffline, type OfflineWorld } from '../agents/index.ts';
import { runPlan } from '../runs/index.ts';
import type { BundledRun, RunBundle } from './bundle.format.ts';
import { offlineEngine, offlineSession } from './offline-engine.ts';
import { recordedDecisions } from './recorded-decisions.ts';
import {
  createRecordedModel,
  endedFromOutside,
  type RecordedModel,
  recordingEnded,
  recordingEnds,
} from './recorded-model.ts';
import {
  type BundleReport,
  bundleReport,
  type OutcomeReport,
  type RunReport,
  type TextChange,
  worst,
} from './replay-report.ts';

/** Definitions that take the place of recorded ones, by agent name. */
export type DefinitionChanges = ReadonlyMap<string, AgentContent>;

const worldOf = (bundle: RunBundle, changes: DefinitionChanges, model: RecordedModel): OfflineWorld => {
  const contents = new Map(bundle.definitions.map(({ name, content }) => [name, content]));
  for (const [name, content] of changes) contents.set(name, content);
  return { contents, provider: (name) => model.provider(name), tool: (name) => bundle.tools.get(name) };
};

/** Puts `after` where `before` stands in the whole; what features added around the own text stays. */
const exchanged = (whole: string | null, before: string | null, after: string | null): string | null => {
  if (whole === null || before === null || before === '') return after ?? whole;
  const at = whole.indexOf(before);
  return at === -1 ? after : `${whole.slice(0, at)}${after ?? ''}${whole.slice(at + before.length)}`;
};

const sameTool = (a: ModelTool, b: ModelTool): boolean => JSON.stringify(a) === JSON.stringify(b);

/** The recorded tools with those of the definition exchanged; tools that features added follow, as they did. */
const exchangedTools = (
  whole: readonly ModelTool[],
  before: readonly ModelTool[],
  after: readonly ModelTool[],
): readonly ModelTool[] => {
  if (before.length === after.length && before.every((tool, index) => sameTool(tool, after[index] as ModelTool)))
    return whole;
  // The run was a replay without tools.
  if (whole.length === 0) return whole;
  const own = new Set(before.map(({ name }) => name));
  return [...after, ...whole.filter(({ name }) => !own.has(name))];
};

/** A replay may have been made on another model than its definition's. */
const asReplayed = (content: AgentContent, { record, steps }: BundledRun): AgentContent => {
  const { replayOfRunId, modelProvider: provider, modelId } = record;
  const fellBack = steps.some(({ fallbacks }) => fallbacks.length > 0);
  if (replayOfRunId === null || provider === null || modelId === null || fellBack) return content;
  return { ...content, model: { ...content.model, provider, model: modelId } };
};

interface Subject {
  readonly agent: CompiledAgent;
  readonly decisions: RecordedDecisions;
  readonly changes: readonly TextChange[];
}

const toolText = (tools: readonly ModelTool[]): string => JSON.stringify(tools, null, 2);

/**
 * The agent as it was compiled for the recording, with a changed definition put in its place. What the service adds
 * beside the definition (skills, memory, harness) comes from the recording.
 */
const subjectOf = async (
  bundle: RunBundle,
  changes: DefinitionChanges,
  run: BundledRun,
  model: RecordedModel,
): Promise<Subject> => {
  const { agentName: name, agentVersion } = run.record;
  const recorded =
    bundle.definitions.find((definition) => definition.name === name && definition.version === agentVersion) ??
    bundle.definitions.find((definition) => definition.name === name);
  if (recorded === undefined) throw new AcpError('bundle-invalid', `The bundle has no definition of agent "${name}".`);
  const { start } = run;
  const content = asReplayed(recorded.content, run);
  const world = worldOf(bundle, new Map(), model);
  const before = await compileOffline(content, recorded.version, world);
  const after =
    changes.size === 0
      ? before
      : await compileOffline(changes.get(name) ?? content, recorded.version, worldOf(bundle, changes, model));
  const textOf = (agent: CompiledAgent): string | null => {
    try {
      return agent.instructions(start.culture, agent.resolveParameters(start.parameters));
    } catch {
      // A changed definition may declare other parameters; its placeholders are filled with what there is.
      return agent.instructions(start.culture, start.parameters);
    }
  };
  const recordedText = start.compiled === null ? textOf(before) : start.compiled.instructions;
  const instructions = after === before ? recordedText : exchanged(recordedText, textOf(before), textOf(after));
  const tools = exchangedTools(start.compiled?.tools ?? before.modelTools, before.modelTools, after.modelTools);
  const agent: CompiledAgent = {
    ...after,
    hasMemory: false,
    hasModes: false,
    modelTools: tools,
    model: { ...after.model, responseCacheMs: null },
    instructions: () => instructions,
    resolveParameters: () => start.parameters,
  };
  const recordedTools = start.compiled?.tools ?? before.modelTools;
  const textChanges: TextChange[] = [];
  if (instructions !== recordedText)
    textChanges.push({ part: 'instructions', recorded: recordedText ?? '', replayed: instructions ?? '' });
  if (tools !== recordedTools)
    textChanges.push({ part: 'tools', recorded: toolText(recordedTools), replayed: toolText(tools) });
  const { redacted: isRedacted } = bundle.header;
  return {
    agent,
    decisions: recordedDecisions(run, { before, after, isRedacted }, recordingEnded),
    changes: textChanges,
  };
};

/** Where the turn begins: with its messages, or with calls that an earlier run had left open. */
const resumeOf = (run: BundledRun): TurnResume => {
  const { input, openResults } = run.start;
  const messages = input ?? [];
  if (openResults === null) return { messages, calls: [], earlier: null };
  const calls = openResults.flatMap((part) =>
    part.type === 'ToolResult'
      ? [
          {
            call: { type: 'tool-call' as const, toolCallId: part.toolCallId, toolName: part.toolName, input: '{}' },
            idempotencyKey: '',
            answer: part,
          },
        ]
      : [],
  );
  // A message that came with the answers followed them.
  const next = messages.at(-1);
  const isSaid = next?.role === 'User' && next.contents.every(({ type }) => type !== 'ApprovalResponse');
  if (next === undefined || !isSaid) return { messages, calls, earlier: null };
  return { messages: messages.slice(0, -1), calls, earlier: null, next };
};

const planOf = (run: BundledRun, { agent, decisions }: Subject): RunPlan => {
  const resume = resumeOf(run);
  const { record, start } = run;
  return runPlan({
    id: record.id,
    tenantId: record.tenantId,
    requestId: record.id,
    agent,
    attachments: attachmentsIn(resume.next === undefined ? [] : [resume.next]),
    culture: start.culture,
    parameters: start.parameters,
    sessionId: record.sessionId,
    session:
      start.history === null
        ? null
        : offlineSession(record.sessionId ?? record.id, start.history, start.historySummary ?? null),
    principal: { kind: 'Host', role: null, scopes: null, actor: null, userId: null, apiKey: null, permissions: null },
    userId: null,
    ownerId: null,
    labels: null,
    createdAt: 0,
    resume,
    resources: start.resources ?? [],
    replay: { sourceRunId: record.id, isLive: false, tools: recordedTools(run.tools), decisions },
  });
};

const outcomeOf = (
  run: BundledRun,
  replayed: { status: string; output: string | null; type: string | null },
): OutcomeReport => {
  const { record, events } = run;
  const last = events.at(-1);
  const output = typeof last?.['output'] === 'string' ? last['output'] : null;
  const told = (status: string, type: string | null): string => (type === null ? status : `${status} (${type})`);
  const recordedType = record.error?.type ?? null;
  const recorded = told(record.status, recordedType);
  const same = { result: 'identical', recorded, replayed: recorded } as const;
  // Where the recording stops, so does the replay: a pause, a cancel and a lost process come from outside.
  const stopped = replayed.type === recordingEnds || replayed.type === 'replay_result_missing';
  // One that was refused when it was stored had its answer.
  if (endedFromOutside(run) && (stopped || replayed.status === 'Completed')) return same;
  const now = told(replayed.status, replayed.type);
  if (now !== recorded) return { result: stopped ? 'missing' : 'drifted', recorded, replayed: now };
  if (record.status !== 'Completed' || output === null || replayed.output === null) return same;
  return textHash(output) === textHash(replayed.output)
    ? same
    : { result: 'drifted', recorded: `${recorded} with another output`, replayed: now };
};

const replayRun = async (bundle: RunBundle, changes: DefinitionChanges, run: BundledRun): Promise<RunReport> => {
  const { record, start } = run;
  const { id: runId, agentName, agentVersion, depth, status } = record;
  const head = { runId, agentName, agentVersion, depth };
  const unable = (reason: string): RunReport => ({
    ...head,
    result: 'missing',
    steps: run.steps.map(({ number }) => ({ number, result: 'missing', differences: [], reason })),
    outcome: { result: 'missing', recorded: status, replayed: reason },
    changes: [],
  });
  const [gap] = start.missing;
  if (start.input === null || gap !== undefined) return unable(gap ?? 'The input was not recorded.');
  // Refused before its first model call: there is nothing to repeat.
  if (record.error?.class === 'CompilationFailed') return unable('The agent did not compile.');
  const model = createRecordedModel(run, bundle.header.redacted);
  const subject = await subjectOf(bundle, changes, run, model);
  model.prepare(subject.agent);
  const outcome = await offlineEngine(run).start(planOf(run, subject)).done;
  const steps = model.reports(outcome.failure?.type === recordingEnds ? outcome.failure.message : null);
  const ending = outcomeOf(run, {
    status: outcome.status,
    output: outcome.output,
    type: outcome.failure?.type ?? null,
  });
  return {
    ...head,
    result: worst([...steps.map(({ result }) => result), ending.result]),
    steps,
    outcome: ending,
    changes: subject.changes,
  };
};

/**
 * Executes every run of the tree again in this process, with the recording in place of models and tools: no key, no
 * network, no store. Runs are independent of each other, because a call of another agent is answered like a tool's.
 * Throws `bundle-invalid`, and CompileError for a changed definition that does not compile.
 * Design: docs/design/replays.md.
 */
export const replayBundle = async (bundle: RunBundle, changes: DefinitionChanges): Promise<BundleReport> => {
  const runs: RunReport[] = [];
  const short: string[] = [];
  for await (const run of bundle.runs()) {
    runs.push(await replayRun(bundle, changes, run));
    if (run.record.warnings !== undefined)
      short.push(`The record of run ${run.record.id} is incomplete: the store did not take all of it.`);
  }
  const names = new Set(runs.map(({ agentName }) => agentName));
  const warnings = [...changes.keys()]
    .filter((name) => !names.has(name))
    .map((name) => `No run of the bundle is one of agent "${name}".`);
  return bundleReport(bundle.header, runs, [...short, ...warnings]);
};
