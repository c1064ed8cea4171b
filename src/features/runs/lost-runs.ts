import { AcpError } from '../../contract/errors.ts';
import { ConditionFailedError } from '../../db/statement.ts';
import type { Storage } from '../../db/storage.ts';
import type { JobRow } from '../../db/tables/jobs.ts';
import type { RunRow } from '../../db/tables.ts';
import type { RunJournal } from '../../engine/record/index.ts';
import { RunFailure } from '../../engine/run-failure.ts';
import { type JobStore, jobStore } from '../jobs/index.ts';
import { type QueuedPlaces, sessionStore } from '../sessions/index.ts';
import type { DetachedRuns, UnitStep } from './detached-runs.ts';
import { isQueuedRun, type QueuedRuns, runJobKeys } from './launch/index.ts';
import type { EndedRemoteTasks, RemoteEnd } from './lost-remote-tasks.ts';
import type { LostTurns } from './lost-turns.ts';
import { runCancelStore } from './run-cancels.store.ts';
import type { RunCancels } from './run-cancels.ts';
import type { LedgerCall, TurnStore } from './run-turns.store.ts';
import type { RunStore } from './runs.store.ts';

interface LostRunDeps {
  readonly storage: Pick<Storage, 'transaction'>;
  readonly store: RunStore;
  readonly turns: TurnStore;
  readonly lostTurns: Pick<LostTurns, 'of'>;
  readonly jobs: JobStore;
  readonly queuedPlaces: Pick<QueuedPlaces, 'freed'>;
  readonly detached: DetachedRuns;
  readonly journal: RunJournal;
  readonly queued: Pick<QueuedRuns, 'continuation'>;
  readonly cancels: Pick<RunCancels, 'isAsked'>;
  readonly remoteEnds: EndedRemoteTasks;
  readonly now: () => number;
}

const remoteText: Readonly<Record<RemoteEnd['kind'], string>> = {
  ended: ' The agent that it had asked is told to cancel its task.',
  left: ' The task of the agent that it had asked goes on there.',
};

// A message names a few calls; all of them stand in the ledger.
const namedCalls = 5;

const orphaned = (unknown: readonly LedgerCall[], remote: RemoteEnd['kind'] | null): RunFailure => {
  const names = unknown
    .slice(0, namedCalls)
    .map((call) => `"${call.tool_call_id}" of "${call.tool_name}" (${call.effect})`);
  const more = unknown.length > namedCalls ? ` and ${unknown.length - namedCalls} more` : '';
  const calls = unknown.length === 0 ? '' : ` The outcome of these tool calls is unknown: ${names.join(', ')}${more}.`;
  return new RunFailure(
    'Infrastructure',
    'orphaned',
    `The process that executed the run ended before the run did.${calls}${remote === null ? '' : remoteText[remote]}`,
  );
};

const isHeld = (job: JobRow | undefined): job is JobRow => job?.status === 'Leased' || job?.status === 'Running';

/** A turn that cannot be decrypted is not gone on with, and holds up nobody's start. */
const unreadable = (error: unknown): null => {
  if (error instanceof AcpError && error.code === 'decryption-failed') return null;
  throw error;
};

/** Runs whose process is gone: their next attempt, their end, and the run that goes on with their turn. */
export const createLostRuns = (deps: LostRunDeps) => {
  const { storage, store, turns, lostTurns, jobs, queuedPlaces, detached, journal, queued, cancels, remoteEnds, now } =
    deps;

  /** Back in line at once: the attempt was lost, not refused, and a lost worker stalls a job for one lease at most. */
  const requeue = async (row: RunRow, job: JobRow): Promise<'requeued' | 'gone'> => {
    const again = [
      { ...store.requeued(row.tenant_id, row.id), mustChange: true },
      journal.toolsUnknown(row.id),
      jobs.retried(job.id, job.attempt, now()),
    ];
    try {
      await storage.transaction((stores) => stores.write(again));
      return 'requeued';
    } catch (error) {
      if (error instanceof ConditionFailedError) return 'gone';
      throw error;
    }
  };

  const close = async (row: RunRow, job: JobRow | undefined, assert?: UnitStep): Promise<'closed' | 'gone'> => {
    const unknown = (await turns.ledger(row.id)).filter((call) => call.state !== 'Settled');
    const remote = await remoteEnds.of(row);
    const failure = orphaned(unknown, remote?.kind ?? null);
    const isRoot = row.parent_run_id === null;
    const stored = isRoot && (await turns.turn(row.tenant_id, row.id).catch(unreadable)) !== null;
    const run = { id: row.id, tenantId: row.tenant_id, agentName: row.agent_name, sessionId: row.session_id };
    // Nobody goes on with a turn of which somebody has asked the end.
    const isAsked = await cancels.isAsked(row.id);
    const continued = stored && !isAsked ? queued.continuation(run, failure) : [];
    // Without its lock a process that was only suspended cannot save the turn, which another run may go on with.
    const { tenantId, sessionId } = run;
    const freed = sessionId === null ? [] : queuedPlaces.freed({ tenantId, sessionId, runId: row.id });
    const rows = [journal.toolsUnknown(row.id), ...freed, ...continued, ...(remote?.statements ?? [])];
    const closing = { status: 'Failed', failure, keepsTurn: continued.length > 0 } as const;
    const kept = continued.length > 0 ? null : await lostTurns.of(row);
    const keepTurn: UnitStep = async (stores) => {
      if (kept === null || sessionId === null || kept.messages.length === 0) return;
      const sessions = stores(sessionStore);
      const session = await sessions.get(tenantId, sessionId);
      // The process that has taken the session since has stored the turn.
      if (session?.active_run_id === row.id)
        await stores.write(sessions.saveTurn(session, row.id, kept.messages, null, now()));
    };
    const rest: UnitStep = async (stores) => {
      await assert?.(stores);
      if (isHeld(job)) await stores(jobStore).lose(job.id, job.attempt, now());
      if (isAsked) await stores(runCancelStore).drop(row.id);
      await stores.write(rows);
    };
    const isClosed = await detached.close(row, closing, rest, keepTurn);
    if (isClosed) remote?.closed();
    return isClosed ? 'closed' : 'gone';
  };

  return {
    /** Closes what executes below a run of which another attempt follows, or that is closed next; how many. */
    async loseDescendants(row: RunRow, assert?: UnitStep): Promise<number> {
      let closed = 0;
      for (const member of await store.executing(row.tenant_id, row.id))
        if ((await close(member, undefined, assert)) === 'closed') closed += 1;
      return closed;
    },
    /** `gone`: the run was closed meanwhile, or what `assert` asks in the unit of its end does not hold. */
    async lose(row: RunRow, assert?: UnitStep): Promise<'requeued' | 'closed' | 'gone'> {
      const job = isQueuedRun(row) ? await jobs.get(row.job_id) : undefined;
      const retries = job !== undefined && runJobKeys.includes(job.handler_key);
      if (row.status === 'Running' && retries && isHeld(job) && job.attempt < job.max_attempts)
        return requeue(row, job);
      return close(row, job, assert);
    },
  };
};

export type LostRuns = ReturnType<typeof createLostRuns>;
