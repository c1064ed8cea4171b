import { AcpError } from '../../contract/errors.ts';
import type { CallContext } from '../../core/context.ts';
import type { RunRow } from '../../db/tables.ts';
import type { RunStore } from './runs.store.ts';

/** Which runs a caller may see. Every operation on a run finds it here, so that all refuse alike. */
export interface RunAccess {
  /** The run, or `run-not-found`: for an unknown one, another tenant's, and one that the caller may not see. */
  find(context: CallContext, runId: string): Promise<RunRow>;
}

export const createRunAccess = (store: Pick<RunStore, 'get'>): RunAccess => ({
  async find({ tenantId }, runId) {
    const row = await store.get(tenantId, runId.toLowerCase());
    if (row === undefined) throw new AcpError('run-not-found', `Run ${runId} was not found.`);
    return row;
  },
});
