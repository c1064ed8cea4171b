import { AcpError } from '../../contract/errors.ts';
import { ok } from '../../contract/operation.ts';
import type { CallContext, Handlers } from '../../core/context.ts';
import { isoTime } from '../../core/iso-time.ts';
import { errorTypeOf, type Span } from '../../core/telemetry/span.ts';
import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import { ConditionFailedError } from '../../db/statement.ts';
import type { Storage } from '../../db/storage.ts';
import type { SessionRow } from '../../db/tables/sessions.ts';
import type { AuditLog } from '../audit/index.ts';
import type { SessionErasure } from '../sessions/index.ts';
import type { ResolveSubject } from './data-subject-resolver.ts';
import type { dataSubjectOperations } from './data-subjects.operations.ts';
import { writeSubject } from './subject-export.ts';
import { type SubjectScope, subjectStore } from './subject-rows.store.ts';

export interface DataSubjectDeps {
  readonly storage: Pick<Storage, 'stores'>;
  readonly audit: Pick<AuditLog, 'change' | 'tell'>;
  readonly resolve: ResolveSubject;
  readonly eraseSessions: (rows: readonly SessionRow[]) => Promise<SessionErasure>;
  /** Throws while no bytes can be removed: an erasure is whole or refused. */
  readonly assertReleasable: () => void;
  /** Removes the bytes that no attachment names any more. */
  readonly releaseBytes: (tenantId: string, hashes: readonly string[]) => Promise<void>;
  readonly messagesOf: (tenantId: string, sessionId: string) => Promise<readonly unknown[]>;
  readonly telemetry: Pick<Telemetry, 'begin' | 'finish'>;
  readonly now: () => number;
}

// More ids than these help nobody; all of them are in the run list.
const maxNamedRuns = 50;

const requireIdle = ({ runs }: SubjectScope): void => {
  const active = runs.filter(({ status }) => status === 'Queued' || status === 'Running').map(({ id }) => id);
  if (active.length === 0) return;
  const runIds = active.slice(0, maxNamedRuns);
  throw new AcpError('data-subject-active', `Runs of the person are queued or in progress: ${runIds.join(', ')}.`, {
    details: { runIds },
  });
};

const rowCounts = (rowsByTarget: Readonly<Record<string, number>>) =>
  Object.fromEntries(Object.entries(rowsByTarget).map(([target, rows]) => [`acp.data_subject.rows.${target}`, rows]));

export const dataSubjectService = (deps: DataSubjectDeps): Handlers<typeof dataSubjectOperations> => {
  const { audit, telemetry, now } = deps;
  const store = deps.storage.stores(subjectStore);

  /** A span of the work, which says how much there was and never whose. A file goes on to be sent when it ends. */
  const traced = async <T>(
    { tenantId, trace }: CallContext,
    verb: 'export' | 'erase',
    work: (span: Span | null) => Promise<T>,
  ): Promise<T> => {
    const span = telemetry.begin(`acp.data_subject.${verb}`, 'Internal', trace ?? null, { 'acp.tenant.id': tenantId });
    try {
      const result = await work(span);
      telemetry.finish(span);
      return result;
    } catch (error) {
      telemetry.finish(span, errorTypeOf(error));
      throw error;
    }
  };

  return {
    export: (context, { params: { id } }) =>
      traced(context, 'export', async (span) => {
        const { tenantId } = context;
        const scope = await store.find(tenantId, await deps.resolve(tenantId, id, context.signal));
        const rowsByTarget = await store.count(scope);
        span?.set(rowCounts(rowsByTarget));
        await audit.tell(context, { id, before: null, after: { rowsByTarget } });
        const bytes = writeSubject({ store, messagesOf: deps.messagesOf }, scope, {
          subjectId: id,
          exportedAt: isoTime(now()),
        });
        return {
          status: 200,
          file: { sizeBytes: null, bytes, dispose: async () => void (await bytes.return()) },
          headers: {
            'Content-Type': 'application/json',
            'Content-Disposition': 'attachment; filename="data-subject.json"',
            'Cache-Control': 'no-store',
          },
        };
      }),

    erase: (context, { params: { id }, query }) =>
      traced(context, 'erase', async (span) => {
        const { tenantId } = context;
        const identity = await deps.resolve(tenantId, id, context.signal);
        const found = await store.find(tenantId, identity);
        if (query.dryRun !== false) {
          const counts = await store.count(found);
          span?.set({ ...rowCounts(counts), 'acp.data_subject.dry_run': true });
          return ok({ dryRun: true, rowsByTarget: counts });
        }
        requireIdle(found);
        if (found.attachments.length > 0) deps.assertReleasable();
        const known = new Set(found.sessions.map((session) => session.id));
        const erasure = await deps.eraseSessions(found.sessions);
        const { rowsByTarget, scope } = await audit
          .change(context, async (stores, tell) => {
            const subject = stores(subjectStore);
            // Again, now that nobody else writes: what came in between goes, too.
            const scope = await subject.find(tenantId, identity);
            requireIdle(scope);
            // A session that came in between is not in the erasure, and would stay without its messages.
            if (!scope.sessions.every((session) => known.has(session.id))) throw new ConditionFailedError();
            const rowsByTarget = await subject.count(scope);
            // Fails where a session has got a run meanwhile.
            await erasure.remove(stores);
            await subject.remove(scope);
            tell({ id, before: null, after: { rowsByTarget } });
            return { rowsByTarget, scope };
          })
          .catch((error: unknown) => {
            if (!(error instanceof ConditionFailedError)) throw error;
            throw new AcpError('data-subject-active', 'A session of the person is in use; nothing was deleted.', {
              cause: error,
            });
          });
        span?.set(rowCounts(rowsByTarget));
        await erasure.done();
        await deps.releaseBytes(
          tenantId,
          scope.attachments.map(({ sha256 }) => sha256),
        );
        return ok({ dryRun: false, rowsByTarget });
      }),
  };
};
