import { AcpError, invalidField } from '../../contract/errors.ts';
import type { FrameSource } from '../../contract/operation.ts';
import { ok } from '../../contract/operation.ts';
import type { RunAuthorization } from '../../core/caller/run-authorization.ts';
import type { CallContext, Handlers } from '../../core/context.ts';
import type { OpenAiResponseRow } from '../../db/tables/openai.ts';
import type { RunRow } from '../../db/tables.ts';
import type { AuditLog } from '../audit/index.ts';
import { storedWarnings, warningHeader } from '../runs/index.ts';
import type { SessionsFeature } from '../sessions/index.ts';
import { type ItemRules, itemPage, itemRulesOf, itemsOf } from './items.ts';
import { type KeptResponses, responseNotFound } from './kept-responses.ts';
import { ResponseEvents } from './response-events.ts';
import { formsOf, headOf } from './response-head.ts';
import type { responseOperations } from './responses.operations.ts';
import { responseStore } from './responses.store.ts';

export interface ResponseServiceDeps {
  readonly kept: KeptResponses;
  readonly authorization: RunAuthorization;
  readonly runEvents: (tenantId: string, runId: string) => FrameSource;
  /** Asks for the end of a run; throws `run-finished` for one that is over. */
  readonly cancelRun: (context: CallContext, runId: string) => Promise<void>;
  readonly sessions: Pick<SessionsFeature, 'store' | 'remove'>;
  readonly audit: Pick<AuditLog, 'change'>;
  readonly items: ItemRules;
}

/** Events up to this number are left out. */
const after = (source: FrameSource, events: ResponseEvents, last: number): FrameSource => ({
  subscribe: (onFrames, onEnd, drained) =>
    source.subscribe(
      (frames) => {
        const made = frames.flatMap((frame) => {
          const first = events.nextSequence;
          return events.frames(frame).filter((_frame, index) => first + index > last);
        });
        if (made.length > 0) onFrames(made);
      },
      onEnd,
      drained,
    ),
});

const isOpen = ({ status }: RunRow): boolean => status === 'Queued' || status === 'Running';

export const responseService = (deps: ResponseServiceDeps): Omit<Handlers<typeof responseOperations>, 'create'> => {
  const { kept, sessions } = deps;
  const { find, eventsOf, inputOf } = kept;

  /** A session of its own goes with it, as that of a conversation never does. */
  const mayDeleteSession = (context: CallContext, row: OpenAiResponseRow): Promise<boolean> | true =>
    row.session_id !== row.id ||
    deps.authorization.allows(context, 'Delete', {
      resource: 'Session',
      id: row.id,
      sessionId: row.id,
      agentName: row.agent_name,
    });

  return {
    async get(context, { params, query }) {
      const found = await find(context, params.responseId);
      const { stream, starting_after: last } = query;
      if (stream !== true) return ok((await eventsOf(found)).response, warningHeader(storedWarnings(found.run)));
      // A log that cannot be read is an error now: a stream has no way to say it later than by its end.
      const known = await eventsOf(found);
      if (last !== undefined && last >= known.nextSequence)
        throw invalidField('starting_after', `must be below ${known.nextSequence}`);
      const events = new ResponseEvents(found.run.id, headOf(found.row), formsOf(found.row));
      const source = deps.runEvents(context.tenantId, found.run.id);
      return { status: 200, stream: after(source, events, last ?? -1), headers: { 'X-Run-Id': found.run.id } };
    },
    async cancel(context, { params }) {
      const found = await find(context, params.responseId, 'Cancel');
      await deps.cancelRun(context, found.run.id).catch((error: unknown) => {
        // One that has ended stays as it is.
        if (!(error instanceof AcpError) || error.code !== 'run-finished') throw error;
      });
      return ok((await eventsOf(found)).response);
    },
    async remove(context, { params }) {
      const { row, run } = await find(context, params.responseId, 'Delete');
      if (!(await mayDeleteSession(context, row))) throw responseNotFound(row.id);
      if (isOpen(run))
        throw new AcpError(
          'run-not-finished',
          `Response "${row.id}" is in progress and can be removed once it has ended.`,
        );
      if (row.session_id === row.id) {
        const session = await sessions.store.get(row.tenant_id, row.id);
        const end = session === undefined ? 'gone' : await sessions.remove(session);
        if (end === 'busy') throw new AcpError('session-busy', `The session of response "${row.id}" is in use.`);
      }
      await deps.audit.change(context, async (stores, tell) => {
        if (!(await stores(responseStore).remove(row.tenant_id, row.id))) throw responseNotFound(row.id);
        tell({ id: row.id, before: { id: row.id, runId: row.run_id, agentName: row.agent_name }, after: null });
      });
      return ok({ id: row.id, object: 'response', deleted: true });
    },
    async inputItems(context, { params, query }) {
      const found = await find(context, params.responseId);
      const { row } = found;
      const rules = itemRulesOf(row.agent_name, deps.items);
      return ok(itemPage(itemsOf(row.tenant_id, await inputOf(found), rules), query));
    },
  };
};
