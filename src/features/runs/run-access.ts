import { AcpError } from '../../contract/errors.ts';
import type { RunAction, RunAuthorization, RunTarget } from '../../core/caller/run-authorization.ts';
import type { CallContext } from '../../core/context.ts';
import type { RunRow } from '../../db/tables.ts';
import type { SessionAccess } from '../sessions/index.ts';
import type { RunStore } from './runs.store.ts';

/** A run as the host is asked about it. */
export const runTarget = (row: RunRow): RunTarget => ({
  resource: 'Run',
  id: row.id,
  runId: row.id,
  agentName: row.agent_name,
  sessionId: row.session_id,
  userId: row.user_id,
});

const notFound = (runId: string): AcpError => new AcpError('run-not-found', `Run ${runId} was not found.`);

/** Which runs a caller may act on. Every operation on a run finds it here, so that all refuse alike. */
export const createRunAccess = (
  store: Pick<RunStore, 'get'>,
  authorization: RunAuthorization,
  owners: Pick<SessionAccess, 'maySee'>,
) => {
  const allows = async (context: CallContext, action: RunAction, row: RunRow): Promise<boolean> =>
    owners.maySee(context.principal, row.owner_id) && authorization.allows(context, action, runTarget(row));
  /**
   * The run, or `run-not-found`: for an unknown one, another tenant's, another owner's, and one that the host refuses
   * the caller for this action (default `Read`).
   */
  const find = async (context: CallContext, runId: string, action: RunAction = 'Read'): Promise<RunRow> => {
    const row = await store.get(context.tenantId, runId.toLowerCase());
    if (row === undefined || !(await allows(context, action, row))) throw notFound(runId);
    return row;
  };
  return {
    find,
    /** Id of the root of the run's tree, or `run-not-found` with the id that was asked for. */
    async rootOf(context: CallContext, runId: string): Promise<string> {
      const row = await find(context, runId);
      if (row.root_run_id === null || row.root_run_id === row.id) return row.id;
      const root = await store.get(context.tenantId, row.root_run_id);
      // What a tree shows is its root's, whichever member is named.
      if (root !== undefined && !(await allows(context, 'Read', root))) throw notFound(runId);
      return row.root_run_id;
    },
  };
};

export type RunAccess = ReturnType<typeof createRunAccess>;
