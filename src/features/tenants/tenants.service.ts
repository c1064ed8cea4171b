import { AcpError } from '../../contract/errors.ts';
import { noContent, ok } from '../../contract/operation.ts';
import { type AuditTrail, inBothChains } from '../../core/audit.ts';
import type { CallContext, Handlers } from '../../core/context.ts';
import { isoTime } from '../../core/iso-time.ts';
import { tenantOperations } from './tenants.operations.ts';
import type { TenantDescriptor } from './tenants.schema.ts';
import type { StoredTenant, TenantStore } from './tenants.store.ts';

export interface TenantServiceDeps {
  readonly store: TenantStore;
  readonly audit: Pick<AuditTrail, 'note'>;
  readonly defaultTenantId: string;
  readonly now: () => number;
  readonly newId: () => string;
}

const describe = ({ id, slug, displayName, createdAt }: StoredTenant): TenantDescriptor => ({
  id,
  slug,
  displayName,
  createdAt: isoTime(createdAt),
});

const notFound = (): AcpError => new AcpError('not-found', 'There is no such tenant.');

/** The default tenant may address every tenant; another one only itself, and does not learn that others exist. */
export const assertMayAddress = (tenantId: string, slug: string, defaultTenantId: string): void => {
  if (tenantId !== defaultTenantId && tenantId !== slug) throw notFound();
};

export const tenantService = (deps: TenantServiceDeps): Handlers<typeof tenantOperations> => {
  const { store, audit, defaultTenantId, now, newId } = deps;

  const noteOnBoth = async (
    { tenantId, principal }: CallContext,
    slug: string,
    action: string,
    before: StoredTenant | null,
    after: StoredTenant | null,
  ): Promise<void> => {
    const entry = {
      actor: principal.actor,
      action,
      entity: `tenant:${slug}`,
      before: before === null ? null : describe(before),
      after: after === null ? null : describe(after),
    };
    for (const each of inBothChains(tenantId, slug, entry)) await audit.note(each);
  };

  return {
    async current({ tenantId }) {
      return ok({ tenantId });
    },

    async list({ tenantId }) {
      if (tenantId === defaultTenantId) return ok((await store.list()).map(describe));
      const own = await store.find(tenantId);
      return ok(own === null ? [] : [describe(own)]);
    },

    async save(context, { params: { slug }, body }) {
      assertMayAddress(context.tenantId, slug, defaultTenantId);
      const given = body.displayName ?? '';
      const displayName = given.trim() === '' ? slug : given;
      const { before, after } = await store.save({ id: newId(), slug, displayName, createdAt: now() });
      if (before?.displayName !== after.displayName)
        await noteOnBoth(context, slug, tenantOperations.save.audit.action, before, after);
      return ok(describe(after));
    },

    async remove(context, { params: { slug } }) {
      assertMayAddress(context.tenantId, slug, defaultTenantId);
      const removed = await store.remove(slug);
      if (removed === null) throw notFound();
      await noteOnBoth(context, slug, tenantOperations.remove.audit.action, removed, null);
      return noContent();
    },
  };
};
