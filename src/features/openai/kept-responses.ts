import { AcpError } from '../../contract/errors.ts';
import type { CallContext } from '../../core/context.ts';
import type { OpenAiResponseRow } from '../../db/tables/openai.ts';
import type { RunRow } from '../../db/tables.ts';
import type { ChatMessage } from '../../engine/context/index.ts';
import { decodePack } from '../../engine/record/index.ts';
import type { RunAccess, RunRecords } from '../runs/index.ts';
import type { SessionsFeature } from '../sessions/index.ts';
import { firstOfRun, HistoryGoneError } from './history-window.ts';
import { hexOf } from './items.ts';
import { ResponseEvents } from './response-events.ts';
import { formsOf, headOf } from './response-head.ts';
import type { ResponseStore } from './responses.store.ts';

export interface KeptResponseDeps {
  readonly store: Pick<ResponseStore, 'get'>;
  readonly access: Pick<RunAccess, 'find'>;
  readonly records: Pick<RunRecords, 'packs' | 'recordedInput'>;
  readonly sessions: Pick<SessionsFeature, 'store'>;
}

export interface KeptResponse {
  readonly row: OpenAiResponseRow;
  readonly run: RunRow;
}

// Rows read at once, as other readers of a log do.
const packsPerRead = 64;

export const responseNotFound = (id: string): AcpError =>
  new AcpError('response-not-found', `Response "${id}" was not found.`);

/** Stored responses, and what was said in them. */
export const createKeptResponses = ({ store, access, records, sessions }: KeptResponseDeps) => ({
  /** With its run, which says who may see it, and what else is asked of it. Throws `response-not-found`. */
  async find(context: CallContext, id: string, action?: 'Cancel' | 'Delete'): Promise<KeptResponse> {
    const row = await store.get(context.tenantId, id);
    if (row === undefined) throw responseNotFound(id);
    try {
      const run = await access.find(context, row.run_id);
      if (action !== undefined) await access.find(context, row.run_id, action);
      return { row, run };
    } catch (error) {
      throw error instanceof AcpError && error.code === 'run-not-found' ? responseNotFound(id) : error;
    }
  },
  /** What the log has said so far. */
  async eventsOf({ row, run }: KeptResponse): Promise<ResponseEvents> {
    const events = new ResponseEvents(run.id, headOf(row), formsOf(row));
    for (let next = 0; ; ) {
      const packs = await records.packs(row.tenant_id, run.id, next, packsPerRead);
      for (const pack of packs) {
        for (const frame of decodePack(run.id, pack.firstSequence, pack.events, next)) events.frames(frame);
        next = pack.lastSequence + 1;
      }
      if (packs.length < packsPerRead) return events;
    }
  },
  async inputOf({ row, run }: KeptResponse): Promise<readonly ChatMessage[]> {
    const session = await sessions.store.get(row.tenant_id, row.session_id);
    const first =
      session === undefined
        ? undefined
        : await firstOfRun(sessions.store, session, hexOf(run.id)).catch((error: unknown) => {
            // Of a session that is removed meanwhile nothing is left, as of one that was removed before.
            if (error instanceof HistoryGoneError) return undefined;
            throw error;
          });
    // Results that the turn went on with come first, in a message of their own.
    const results = first?.role === 'Tool' ? [first] : [];
    const recorded = await records.recordedInput(row.tenant_id, run.id);
    return [...results, ...(recorded?.messages ?? [])];
  },
});

export type KeptResponses = ReturnType<typeof createKeptResponses>;
