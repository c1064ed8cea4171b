import { AcpError } from '../../contract/errors.ts';
import type { Json } from '../../contract/schema.ts';
import { isoTime } from '../../core/iso-time.ts';
import { version as productVersion } from '../../core/version.ts';
import type { RunRow } from '../../db/tables.ts';
import { type CompiledAgent, CompileError } from '../../engine/compiled-agent.ts';
import {
  type ChatMessage,
  type ContentPart,
  type GivenContext,
  withGiven,
  withResources,
} from '../../engine/context/index.ts';
import {
  decodePack,
  noToolsHash,
  type PromptHashes,
  readModelCalls,
  type StoredModelCalls,
  textHash,
} from '../../engine/record/index.ts';
import { type AgentVariant, type AgentVariants, stampedVersion } from '../agents/index.ts';
import { askedAgent, type RunRecords, type TreeMember, toRunRecord } from '../runs/index.ts';
import type { SessionStore } from '../sessions/index.ts';
import {
  type BundleDefinition,
  type BundledRun,
  type BundleHeader,
  type BundleLine,
  type BundleStart,
  bundleFormat,
  bundleVersion,
} from './bundle.format.ts';
import { redactedRun } from './bundle-redaction.ts';
import { recordedGiven } from './recorded-given.ts';
import { type LoggedEvent, recordedSteps } from './recorded-steps.ts';

export interface BundleDeps {
  readonly records: RunRecords;
  readonly sessions: Pick<SessionStore, 'get' | 'messages'>;
  readonly variants: AgentVariants;
  readonly now: () => number;
}

const maxCalls = 100_000;
const packsPerRead = 64;

const eventsOf = async (
  { records }: BundleDeps,
  { tenant_id: tenantId, id: runId }: RunRow,
): Promise<LoggedEvent[]> => {
  const events: LoggedEvent[] = [];
  for (let next = 0; ; ) {
    const packs = await records.packs(tenantId, runId, next, packsPerRead);
    for (const pack of packs) {
      for (const frame of decodePack(runId, pack.firstSequence, pack.events, next))
        events.push(JSON.parse(frame.data) as Record<string, Json>);
      next = pack.lastSequence + 1;
    }
    if (packs.length < packsPerRead) return events;
  }
};

interface SessionPart {
  readonly history: readonly ChatMessage[] | null;
  readonly turn: readonly ChatMessage[];
  readonly missing: string | null;
}

/** History and turn of a run as the session has them; a conversation is only added to. */
const sessionPart = async (deps: BundleDeps, run: RunRow, length: number | null): Promise<SessionPart> => {
  if (run.session_id === null) return { history: null, turn: [], missing: null };
  const gone = { history: null, turn: [] };
  if (length === null) return { ...gone, missing: 'How much of the history the run saw was not recorded.' };
  const session = await deps.sessions.get(run.tenant_id, run.session_id);
  // A session of this id that is younger than the run is another one.
  const isOther = session === undefined || session.created_at > (run.started_at ?? run.created_at) + 1000;
  const messages = isOther ? [] : await deps.sessions.messages(session);
  if (messages.length < length) return { ...gone, missing: 'The history of the session was deleted.' };
  return {
    history: messages.slice(0, length),
    turn: messages.filter((message) => message.runId === run.id),
    missing: null,
  };
};

/** Null for what is gone or no longer fits: the bundle says so, and the replay compiles what the bundle has. */
const orNull = async <T>(work: Promise<T>): Promise<T | null> => {
  try {
    return await work;
  } catch (error) {
    if (error instanceof AcpError || error instanceof CompileError) return null;
    throw error;
  }
};

type StartContext = Pick<BundleStart, 'culture' | 'parameters' | 'resources'>;

/** The system text of the run, before what it has read: of several modes the one that was sent. */
const instructionsOf = (
  agent: CompiledAgent,
  { culture, parameters, resources = [] }: StartContext,
  given: GivenContext | null,
  sent: string | undefined,
): string | null => {
  const texts = (['act', 'plan'] as const).map((mode) =>
    withGiven(agent.instructions(culture, parameters, mode), given),
  );
  const hashOf = (text: string | null): string => textHash(withResources(text, resources) ?? '');
  const same = texts.find((text) => sent !== undefined && hashOf(text).startsWith(sent));
  return same === undefined ? (texts[0] ?? null) : same;
};

/** What a run's agent was, as far as it is still there. */
interface RunAgent {
  readonly variant: AgentVariant | null;
  readonly agent: CompiledAgent | null;
}

const findAgent = async (
  deps: BundleDeps,
  tenantId: string,
  { agentName: name, agentVersion, agentSavedAt }: AgentUsed,
): Promise<RunAgent> => {
  const current = await orNull(deps.variants.find(tenantId, name, null));
  // Agents of code have one version, which is always the current one.
  const version = current?.agent.origin === 'code' ? null : agentVersion;
  const change = { version, modelProvider: null, modelId: null };
  const variant = version === null ? current : await orNull(deps.variants.find(tenantId, name, version));
  const savedAt = variant?.agent.origin === 'database' ? variant.agent.updatedAt : 0;
  // Another agent that has its name by now.
  if (agentSavedAt !== null && savedAt !== agentSavedAt) return { variant: null, agent: null };
  return {
    variant,
    agent: await orNull(deps.variants.compile(tenantId, name, change)),
  };
};

type AgentUsed = Pick<TreeMember, 'agentName' | 'agentVersion' | 'agentSavedAt'>;

const agentKey = ({ agentName, agentVersion, agentSavedAt }: AgentUsed): string =>
  `${agentName}@${agentVersion}@${agentSavedAt}`;

const compiledStart = (
  agent: CompiledAgent,
  context: StartContext,
  given: GivenContext | null,
  sent: PromptHashes | undefined,
): BundleStart['compiled'] => ({
  instructions: instructionsOf(agent, context, given, sent?.instructions),
  // A replay without tools offers none of those that the agent has.
  tools: sent?.tools === noToolsHash ? [] : agent.modelTools,
  contextWindowTokens: agent.model.catalog?.contextWindowTokens ?? null,
});

/** Results of calls that another run had left open: what the turn begins with, in the session or in the run's own record. */
const openResultsOf = (
  turn: readonly ChatMessage[],
  stored: StoredModelCalls | null,
): readonly ContentPart[] | null | undefined => {
  const firstAnswer = turn.findIndex(({ role }) => role === 'Assistant');
  const opening = firstAnswer === -1 ? turn : turn.slice(0, firstAnswer);
  return opening.find(({ role }) => role === 'Tool')?.contents ?? stored?.openResults;
};

const bundledRun = async (deps: BundleDeps, row: RunRow, { variant, agent }: RunAgent): Promise<BundledRun> => {
  const { records } = deps;
  const recorded = await records.recordedInput(row.tenant_id, row.id);
  const context = recorded?.context ?? { culture: null, parameters: {}, historyLength: null };
  // What a caller gave as instructions is no message: the model had it with those of the agent.
  const { given, input } = recorded === null ? { given: null, input: null } : recordedGiven(recorded);
  const session = await sessionPart(deps, row, context.historyLength);
  // Nor is what it gave as said before an answer of this run, although a session keeps it with the turn.
  const told = given?.history ?? [];
  const turn = session.turn.slice(told.length);
  const stored = await records.modelCalls(row.tenant_id, row.id);
  const ledger = await records.toolInvocations(row.tenant_id, row.id, maxCalls);
  const events = await eventsOf(deps, row);
  const record = toRunRecord(row, []);
  const calls = stored === null ? [] : readModelCalls(stored);
  const { steps, tools } = recordedSteps({
    events,
    // Ids grow in the order of calling.
    ledger: [...ledger].sort((a, b) => (a.id < b.id ? -1 : 1)),
    calls,
    turn,
    error: record.error,
  });
  const openResults = openResultsOf(turn, stored);
  const missing = [
    ...(recorded === null ? ['The input was not recorded, or was removed.'] : []),
    ...(session.missing === null ? [] : [session.missing]),
    ...(openResults === null ? ['Results of calls that an earlier run had left open were not recorded whole.'] : []),
    ...(variant === null ? [`Version ${row.agent_version} of agent "${row.agent_name}" is gone.`] : []),
    ...(events.length === 0 ? ['The events were removed.'] : []),
  ];
  return {
    record,
    start: {
      culture: context.culture,
      parameters: context.parameters,
      input,
      history: told.length === 0 ? session.history : [...(session.history ?? []), ...told],
      historySummary: context.historySummary ?? null,
      ...(context.resources === undefined ? {} : { resources: context.resources }),
      openResults: openResults ?? null,
      compiled:
        agent === null
          ? null
          : compiledStart(askedAgent(agent, recorded?.context.asked ?? null), context, given, calls[0]?.prompt),
      skills: (variant?.agent.content.skillNames ?? []).map((name) => ({
        name,
        fingerprint: variant?.reached.skills.get(name)?.fingerprint ?? '',
      })),
      summaries: stored?.summaries ?? [],
      inputs: stored?.inputs ?? [],
      attachments: stored?.attachments ?? {},
      missing,
    },
    steps,
    tools,
    events,
  };
};

/** The definitions that the variants are and reach, each version once. */
const definitionsOf = (variants: readonly AgentVariant[]): BundleDefinition[] => {
  const definitions = new Map<string, BundleDefinition>();
  const add = (definition: BundleDefinition): void => {
    const key = `${definition.name}@${definition.version}`;
    if (!definitions.has(key)) definitions.set(key, definition);
  };
  for (const { agent } of variants)
    add({ name: agent.content.name, version: agent.version, origin: agent.origin, content: agent.content });
  const names = new Set([...definitions.values()].map(({ name }) => name));
  for (const { reached } of variants)
    for (const [name, content] of reached.agents)
      if (!names.has(name))
        add({ name, version: stampedVersion(reached.stamps.get(name) ?? '1'), origin: 'database', content });
  return [...definitions.values()];
};

const runLines = function* (run: BundledRun): Generator<BundleLine> {
  const section = (name: string): string => `runs/${run.record.id}/${name}`;
  yield { section: section('record'), data: run.record };
  yield { section: section('start'), data: run.start };
  for (const step of run.steps) yield { section: section('steps'), data: step };
  for (const tool of run.tools) yield { section: section('tools'), data: tool };
  for (const event of run.events) yield { section: section('events'), data: event };
};

export interface BundleSubject {
  readonly tenantId: string;
  readonly rootRunId: string;
  readonly members: readonly TreeMember[];
  readonly redact: boolean;
}

/** A run tree as lines; one run is held in memory at a time. Throws `run-not-found` when one is removed meanwhile. */
export const bundleLines = async function* (
  deps: BundleDeps,
  { tenantId, rootRunId, members, redact }: BundleSubject,
): AsyncGenerator<BundleLine> {
  const header: BundleHeader = {
    format: bundleFormat,
    version: bundleVersion,
    productVersion,
    createdAt: isoTime(deps.now()),
    rootRunId,
    redacted: redact,
  };
  yield { section: 'header', data: header };
  const agents = new Map<string, RunAgent>();
  for (const member of members)
    if (!agents.has(agentKey(member))) agents.set(agentKey(member), await findAgent(deps, tenantId, member));
  for (const data of definitionsOf([...agents.values()].flatMap(({ variant }) => variant ?? [])))
    yield { section: 'definitions', data };
  for (const member of members) {
    const row = await deps.records.get(tenantId, member.id);
    if (row === undefined) throw new AcpError('run-not-found', `Run ${member.id} was removed during the export.`);
    const run = await bundledRun(deps, row, agents.get(agentKey(member)) ?? { variant: null, agent: null });
    yield* runLines(redact ? redactedRun(run) : run);
  }
};
