import { systemClock } from '../../core/clock.ts';
import { newId } from '../../core/ids.ts';
import { noTelemetry } from '../../core/telemetry/telemetry.ts';
import type { AttachmentContent, ChatMessage, KeptSummary, LoadedAttachments } from '../../engine/context/index.ts';
import { createRunEngine, type EngineSettings, type RunEngine } from '../../engine/lifecycle/index.ts';
import { createPriceList } from '../../engine/pricing.ts';
import { type EngineLog, type RunJournal, redactionMark, type SessionTurn } from '../../engine/record/index.ts';
import { ToolError } from '../../engine/tools/index.ts';
import { noProtection } from '../../providers/models/protection/call-protection.ts';
import { openAccess } from '../../providers/models/provider-access.ts';
import type { BundledRun } from './bundle.format.ts';

const silent: EngineLog = { info: () => undefined, warn: () => undefined, error: () => undefined };

const nothing = { sql: '', parameters: [] };

/** Nothing is recorded, so nothing of this is ever written. */
const emptyJournal: RunJournal = {
  opened: () => [],
  begun: () => [],
  closed: () => [],
  open: () => nothing,
  packed: () => nothing,
  toolPending: () => [],
  toolSettled: () => [],
  toolAsked: () => [],
  toolRefused: () => [],
  toolAnswered: () => [],
  toolsUnknown: () => nothing,
  modelCalls: () => nothing,
  remoteTask: () => nothing,
  trace: () => nothing,
  step: () => nothing,
  stepsDropped: () => nothing,
};

/** The session as the run saw it; what the repeated turn adds is dropped. */
export const offlineSession = (
  sessionId: string,
  history: readonly ChatMessage[],
  summary: KeptSummary | null,
): SessionTurn => ({
  sessionId,
  history,
  summary,
  save: () => [],
  release: () => [],
  stepBack: () => [],
  ended: () => undefined,
});

const typeOf = (event: BundledRun['events'][number]): string => String(event['type']);

/** Limits of the recording's service, as far as the recording shows them. */
const settingsOf = ({ steps, tools, record, events }: BundledRun): EngineSettings => {
  const lastRound = steps.find(({ answer }) => answer?.finishReason === 'Iterations');
  const failedInARow = tools.length - 1 - tools.findLastIndex(({ succeeded }) => succeeded);
  const gaveUp = record.error?.type === 'tool_error' || record.error?.type === 'tool_timeout';
  const repairs = events.filter((event) => typeOf(event) === 'structured-response.repair-attempted').length;
  return {
    recording: {
      enabled: false,
      recordMessageDeltas: false,
      recordReasoningDeltas: false,
      recordToolPayloads: true,
      recordRunInput: false,
      maxPayloadLength: 0,
    },
    tree: { maxDepth: 0, maxTotalTokens: 0, maxTotalRuns: 0, maxTotalCostMicros: null, maxDurationMs: null },
    maxIterations: lastRound === undefined ? Number.MAX_SAFE_INTEGER : lastRound.number - 1,
    maxConsecutiveToolErrors: gaveUp ? failedInARow - 1 : Number.MAX_SAFE_INTEGER,
    steps: { continuation: false, retries: false },
    childDeadlineMs: null,
    waitTimeoutMs: null,
    structuredResponse: {
      enabled: events.some((event) => typeOf(event) === 'structured-response.rejected'),
      maxRepairAttempts: repairs,
    },
  };
};

/** Marks with the hashes of what the prompts had. */
const recordedAttachments = ({ start }: BundledRun): LoadedAttachments => ({
  get(attachmentId): AttachmentContent | undefined {
    const print = start.attachments[attachmentId];
    if (print === null || print === undefined) return undefined;
    const mark = redactionMark(print.sha256, print.length);
    return print.kind === 'binary' ? { kind: 'binary', base64: mark } : { kind: 'sent', text: mark };
  },
  release: () => undefined,
});

/** The engine itself, with nothing around it: every port is empty, and what it would write goes nowhere. */
export const offlineEngine = (run: BundledRun): RunEngine =>
  createRunEngine({
    children: {
      planRemote() {
        throw new ToolError('A replay calls no other system.');
      },
      async plan(_parent, agentName) {
        throw new ToolError(`Agent "${agentName}" is not called in a replay.`);
      },
    },
    journal: emptyJournal,
    prices: createPriceList(null, {}),
    access: openAccess,
    protection: noProtection,
    telemetry: noTelemetry(),
    responses: { find: async () => null, keep: () => undefined },
    tools: {
      authorizer: null,
      defaultTimeoutMs: 1,
      defaultMaxOutputBytes: null,
      async saveAttachment() {
        throw new ToolError('No tool runs in a replay.');
      },
      log: silent,
    },
    resources: { read: async () => [] },
    attachments: { load: async () => recordedAttachments(run) },
    // The recording has what guards have left, and an answer of theirs stands in it.
    guards: null,
    memory: { openTodos: async () => [], mode: async () => 'act', runClosed: () => [] },
    structuredResponseValidators: new Map(),
    loopCriteria: new Map(),
    // The recording answers before anybody is asked.
    approvals: { decide: async () => ({ kind: 'run', by: null, ruleId: null }), present: async () => null },
    pauses: { opened: () => [] },
    ends: null,
    stops: { reason: () => null, current: () => null },
    quotas: null,
    listeners: null,
    shared: null,
    failureOf: () => null,
    settings: settingsOf(run),
    unfinished: { requeue: () => null, postpone: () => [], continuation: () => [], packPrincipal: () => null },
    log: silent,
    enqueue(unit) {
      // As a store commits: later, so that the engine is never called back from within.
      setImmediate(() => {
        unit.collect();
        unit.committed();
      });
    },
    closeLater: () => undefined,
    now: systemClock.now,
    after: systemClock.after,
    newId,
  });
