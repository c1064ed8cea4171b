import type { KeyObject } from 'node:crypto';
import { AcpError, invalidField } from '../../contract/errors.ts';
import { ok } from '../../contract/operation.ts';
import type { Handlers } from '../../core/context.ts';
import { errorTypeOf } from '../../core/telemetry/span.ts';
import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import type { auditOperations } from './audit.operations.ts';
import type { AuditRange, AuditReadingStore } from './audit-reading.store.ts';
import { checkChain } from './chain-check.rules.ts';
import { isWholeHistory, walkChain } from './chain-walk.ts';
import { writeExport } from './export-writer.ts';

export interface AuditServiceDeps {
  readonly store: AuditReadingStore;
  /** Null: a store in memory, which has no place for one. */
  readonly signingKey: (() => Promise<KeyObject>) | null;
  readonly telemetry: Pick<Telemetry, 'begin' | 'finish'>;
  readonly now: () => number;
}

const defaultLimit = 100;
const maxLimit = 500;
const clampLimit = (limit: number | undefined): number => Math.min(Math.max(limit ?? defaultLimit, 1), maxLimit);

const rangeOf = (query: { readonly after?: string; readonly before?: string }): AuditRange => {
  const after = query.after === undefined ? null : Date.parse(query.after);
  const before = query.before === undefined ? null : Date.parse(query.before);
  if (after !== null && before !== null && after >= before) throw invalidField('after', 'must be earlier than before');
  return { after, before };
};

/** Reads the trail of the caller's tenant; nothing here writes, changes or deletes an entry. */
export const auditService = ({
  store,
  signingKey,
  telemetry,
  now,
}: AuditServiceDeps): Handlers<typeof auditOperations> => ({
  async list({ tenantId }, { query }) {
    const beforeId = query.beforeId?.toLowerCase() ?? null;
    const range = rangeOf(query);
    if (beforeId !== null && !(await store.has(tenantId, beforeId)))
      throw invalidField('beforeId', 'must be the id of an entry of this trail');
    const { actor = null, action = null, entity = null } = query;
    return ok(
      await store.list(tenantId, { actor, action, entity, ...range, beforeId, limit: clampLimit(query.limit) }),
    );
  },

  async get({ tenantId }, { params, query }) {
    const any = { actor: null, action: null, after: null, before: null, beforeId: null };
    return ok(await store.list(tenantId, { ...any, entity: params.entity, limit: clampLimit(query.limit) }));
  },

  async verify({ tenantId, trace }, { query }) {
    const range = rangeOf(query);
    const span = telemetry.begin('acp.audit.verify', 'Internal', trace ?? null, { 'acp.tenant.id': tenantId });
    try {
      const walk = walkChain(store, tenantId, range);
      const check = checkChain(isWholeHistory(range));
      for await (const entry of walk.entries) if (!check.take(entry)) break;
      const verification = check.end(range.before === null ? walk.head() : null);
      const { entriesChecked, status } = verification;
      span?.set({ 'acp.audit.entries_checked': entriesChecked, 'acp.audit.status': status });
      telemetry.finish(span);
      return ok(verification);
    } catch (error) {
      telemetry.finish(span, errorTypeOf(error));
      throw error;
    }
  },

  async export({ tenantId }, { query }) {
    const range = rangeOf(query);
    if (signingKey === null)
      throw new AcpError('persistent-store-required', 'A store in memory has no key to sign with.');
    const key = await signingKey();
    const bytes = writeExport(store, { tenantId, range, key, now: now() });
    return {
      status: 200,
      file: { sizeBytes: null, bytes, dispose: async () => void (await bytes.return()) },
      headers: {
        'Content-Type': 'application/jsonl',
        'Content-Disposition': 'attachment; filename="audit.jsonl"',
        'Cache-Control': 'no-store',
      },
    };
  },
});
