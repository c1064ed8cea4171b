import { defineStore, type StoreHandle, type StoreOf } from '../../db/define-store.ts';
import type { RunRow } from '../../db/tables.ts';
import type { CompiledAgent } from '../../engine/compiled-agent.ts';
import { isMade, type OpenCall, type TurnResume } from '../../engine/context/index.ts';
import { storedTurn, type TurnOrigin, type TurnStep } from '../../engine/record/index.ts';
import { RunFailure } from '../../engine/run-failure.ts';
import { unreportedUsage } from '../../providers/models/model-usage.ts';

export interface LedgerCall {
  readonly tool_call_id: string;
  readonly tool_name: string;
  readonly effect: string;
  readonly idempotency_key: string;
  readonly state: string;
}

// An answer that is streamed has a pack for each 25 ms or so; what is longer begins in the middle.
const maxPacks = 5000;

const stepsOf = async (storage: StoreHandle, tenantId: string, runId: string): Promise<readonly TurnStep[]> => {
  const rows = await storage.db
    .selectFrom('run_steps')
    .select(['run_id', 'sequence', 'content'])
    .where('run_id', '=', runId)
    .orderBy('sequence')
    .execute();
  return rows.map((row) => JSON.parse(storage.rows.open('run_steps', tenantId, row).content) as TurnStep);
};

/** What is stored of turns that have not finished. */
export const turnStore = defineStore((storage) => ({
  async turn(tenantId: string, runId: string) {
    const steps = await stepsOf(storage, tenantId, runId);
    const turn = storedTurn(steps);
    return turn === null ? null : { turn, storedSteps: steps.length };
  },
  steps: (tenantId: string, runId: string): Promise<readonly TurnStep[]> => stepsOf(storage, tenantId, runId),
  /** The end of the run's log, the last event first. */
  async lastPacks(
    tenantId: string,
    runId: string,
  ): Promise<readonly (readonly [string, number, Readonly<Record<string, unknown>>])[]> {
    const rows = await storage.db
      .selectFrom('run_events')
      .select(['run_id', 'first_sequence', 'events'])
      .where('run_id', '=', runId)
      .orderBy('first_sequence', 'desc')
      .limit(maxPacks)
      .execute();
    return rows.flatMap((row) =>
      (
        JSON.parse(storage.rows.open('run_events', tenantId, row).events) as [string, number, Record<string, unknown>][]
      ).reverse(),
    );
  },
  /** Calls of the run that were begun, settled or not. */
  ledger: (runId: string): Promise<readonly LedgerCall[]> =>
    storage.db
      .selectFrom('tool_invocations')
      .select(['tool_call_id', 'tool_name', 'effect', 'idempotency_key', 'state'])
      .where('run_id', '=', runId)
      .orderBy('id')
      .execute(),
  /** A later run of the same session than this one. */
  async hasLaterRun(row: RunRow): Promise<boolean> {
    const later = await storage.db
      .selectFrom('runs')
      .select('id')
      .where('tenant_id', '=', row.tenant_id)
      .where('session_id', '=', row.session_id)
      .where('id', '>', row.id)
      .where('parent_run_id', 'is', null)
      .where('started_at', 'is not', null)
      .limit(1)
      .executeTakeFirst();
    return later !== undefined;
  },
}));

export type TurnStore = StoreOf<typeof turnStore>;

/** True when a call whose fate is unknown may be made once more. */
const mayRepeat = (call: LedgerCall, agent: CompiledAgent): boolean => {
  if (call.effect === 'Read' || call.effect === 'Write') return true;
  const compiled = agent.tools.get(call.tool_name);
  return compiled?.kind === 'tool' && compiled.tool.descriptor.safeToRepeat;
};

const blocked = (call: LedgerCall): RunFailure =>
  new RunFailure(
    'Infrastructure',
    'orphaned',
    `The turn cannot go on: call "${call.tool_call_id}" of tool "${call.tool_name}" (${call.effect}) had started, its outcome is unknown, and it is not repeated.`,
  );

const blockingCall = (
  calls: readonly OpenCall[],
  ledger: readonly LedgerCall[],
  agent: CompiledAgent,
): LedgerCall | undefined => {
  // A settled call has its answer among the steps, so a call that stands in the ledger and is still open has none.
  const open = new Set(calls.flatMap((call) => (isMade(call) ? [call.idempotencyKey] : [])));
  return ledger.find((call) => open.has(call.idempotency_key) && !mayRepeat(call, agent));
};

export const notContinued = (message: string): RunFailure =>
  new RunFailure('Infrastructure', 'continuation_blocked', message);

/**
 * The stored turn of a run, for another attempt of it or for the run that continues it; a failure when nothing is
 * stored, or when a call stands in the way that must not be made twice.
 */
export const storedResume = async (
  store: TurnStore,
  tenantId: string,
  runId: string,
  isSameRun: boolean,
  agent: CompiledAgent,
): Promise<{ readonly origin: TurnOrigin; readonly resume: TurnResume } | RunFailure> => {
  const stored = await store.turn(tenantId, runId);
  if (stored === null) return notContinued('Nothing is stored of the turn.');
  const { turn, storedSteps } = stored;
  const ledger = await store.ledger(runId);
  const call = blockingCall(turn.calls, ledger, agent);
  if (call !== undefined) return blocked(call);
  const settledTools = ledger.filter((entry) => entry.state === 'Settled').length;
  const earlier = isSameRun
    ? { usage: turn.usage ?? unreportedUsage, cost: turn.cost, settledTools, storedSteps }
    : null;
  return { origin: turn.origin, resume: { messages: turn.messages, calls: turn.calls, earlier } };
};

/** Where another attempt of a run goes on: null when nothing had begun. */
export const resumedAttempt = async (
  store: TurnStore,
  tenantId: string,
  runId: string,
  agent: CompiledAgent,
): Promise<TurnResume | RunFailure | null> => {
  if ((await store.turn(tenantId, runId)) === null) {
    // Without its steps the turn begins anew and would make its calls again, the settled ones too.
    const call = (await store.ledger(runId)).find((entry) => !mayRepeat(entry, agent));
    return call === undefined ? null : blocked(call);
  }
  const stored = await storedResume(store, tenantId, runId, true, agent);
  return stored instanceof RunFailure ? stored : stored.resume;
};
