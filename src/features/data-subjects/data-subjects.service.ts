import { AcpError } from '../../contract/errors.ts';
import { ok } from '../../contract/operation.ts';
import type { CallContext, Handlers } from '../../core/context.ts';
import { isoTime } from '../../core/iso-time.ts';
import { ConditionFailedError, type Statement } from '../../db/statement.ts';
import type { Storage } from '../../db/storage.ts';
import type { SessionRow } from '../../db/tables.ts';
import type { AuditLog } from '../audit/index.ts';
import type { ResolveSubject } from './data-subject-resolver.ts';
import { dataSubjectOperations } from './data-subjects.operations.ts';
import { writeSubject } from './subject-export.ts';
import { countSubject, deleteSubject, findSubject, type SubjectScope } from './subject-rows.store.ts';

/** What takes sessions away with all that other features keep of them. */
export interface SessionErasure {
  readonly statements: readonly Statement[];
  /** After the commit: what is outside of the store. */
  done(): Promise<void>;
}

export interface DataSubjectDeps {
  readonly storage: Storage;
  readonly audit: Pick<AuditLog, 'record' | 'append'>;
  readonly resolve: ResolveSubject;
  readonly eraseSessions: (rows: readonly SessionRow[]) => Promise<SessionErasure>;
  /** Removes the bytes that no attachment names any more. */
  readonly releaseBytes: (tenantId: string, hashes: readonly string[]) => Promise<void>;
  readonly messagesOf: (tenantId: string, sessionId: string) => Promise<readonly unknown[]>;
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

export const dataSubjectService = (deps: DataSubjectDeps): Handlers<typeof dataSubjectOperations> => {
  const { storage, audit, now } = deps;

  const entryOf = ({ tenantId, principal }: CallContext, action: string, id: string, after: object) => ({
    tenantId,
    actor: principal.actor,
    action,
    entity: `data-subject:${id}`,
    before: null,
    after,
  });

  return {
    async export(context, { params: { id } }) {
      const { tenantId } = context;
      const scope = await findSubject(storage.db, tenantId, await deps.resolve(tenantId, id, context.signal));
      const rowsByTarget = await countSubject(storage.db, scope);
      await audit.record(entryOf(context, dataSubjectOperations.export.audit, id, { rowsByTarget }), []);
      const bytes = writeSubject(deps, scope, { subjectId: id, exportedAt: isoTime(now()) });
      return {
        status: 200,
        file: { sizeBytes: null, bytes, dispose: async () => void (await bytes.return()) },
        headers: {
          'Content-Type': 'application/json',
          'Content-Disposition': 'attachment; filename="data-subject.json"',
          'Cache-Control': 'no-store',
        },
      };
    },

    async erase(context, { params: { id }, query }) {
      const { tenantId } = context;
      const identity = await deps.resolve(tenantId, id, context.signal);
      const found = await findSubject(storage.db, tenantId, identity);
      if (query.dryRun !== false) return ok({ dryRun: true, rowsByTarget: await countSubject(storage.db, found) });
      requireIdle(found);
      const known = new Set(found.sessions.map(({ id }) => id));
      const erasure = await deps.eraseSessions(found.sessions);
      const { rowsByTarget, scope } = await storage
        .transaction(async (db) => {
          // Again, now that nobody else writes: what came in between goes, too.
          const scope = await findSubject(db, tenantId, identity);
          requireIdle(scope);
          // A session that came in between is not in the erasure, and would stay without its messages.
          if (!scope.sessions.every(({ id }) => known.has(id))) throw new ConditionFailedError();
          const counts = await countSubject(db, scope);
          await deleteSubject(db, scope, erasure.statements);
          await audit.append(db, [entryOf(context, dataSubjectOperations.erase.audit, id, { rowsByTarget: counts })]);
          return { rowsByTarget: counts, scope };
        })
        .catch((error: unknown) => {
          if (!(error instanceof ConditionFailedError)) throw error;
          throw new AcpError('data-subject-active', 'A session of the person is in use; nothing was deleted.', {
            cause: error,
          });
        });
      await erasure.done();
      await deps.releaseBytes(
        tenantId,
        scope.attachments.map(({ sha256 }) => sha256),
      );
      return ok({ dryRun: false, rowsByTarget });
    },
  };
};
