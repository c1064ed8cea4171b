import { AcpError } from '../../contract/errors.ts';
import { noContent, ok } from '../../contract/operation.ts';
import type { Handlers } from '../../core/context.ts';
import { isoTime } from '../../core/iso-time.ts';
import type { TenantRow } from '../../db/tables/access.ts';
import type { AuditLog, ChangedEntity } from '../audit/index.ts';
import type { tenantOperations } from './tenants.operations.ts';
import type { TenantDescriptor } from './tenants.schema.ts';
import { type TenantStore, tenantStore } from './tenants.store.ts';

export interface TenantServiceDeps {
  readonly store: TenantStore;
  readonly audit: Pick<AuditLog, 'change'>;
  readonly defaultTenantId: string;
  readonly now: () => number;
  readonly newId: () => string;
}

const describe = ({ id, slug, display_name, created_at }: TenantRow): TenantDescriptor => ({
  id,
  slug,
  displayName: display_name,
  createdAt: isoTime(created_at),
});

const changed = (slug: string, before?: TenantRow, after?: TenantRow): ChangedEntity => ({
  id: slug,
  aboutTenant: slug,
  before: before === undefined ? null : describe(before),
  after: after === undefined ? null : describe(after),
});

const notFound = (): AcpError => new AcpError('not-found', 'There is no such tenant.');

/** The default tenant may address every tenant; another one only itself, and does not learn that others exist. */
export const assertMayAddress = (tenantId: string, slug: string, defaultTenantId: string): void => {
  if (tenantId !== defaultTenantId && tenantId !== slug) throw notFound();
};

export const tenantService = (deps: TenantServiceDeps): Handlers<typeof tenantOperations> => {
  const { store, audit, defaultTenantId, now, newId } = deps;

  return {
    async current({ tenantId }) {
      return ok({ tenantId });
    },

    async list({ tenantId }) {
      if (tenantId === defaultTenantId) return ok((await store.list()).map(describe));
      const own = await store.find(tenantId);
      return ok(own === undefined ? [] : [describe(own)]);
    },

    async save(context, { params: { slug }, body }) {
      assertMayAddress(context.tenantId, slug, defaultTenantId);
      const name = body.displayName ?? '';
      const displayName = name.trim() === '' ? slug : name;
      const saved = await audit.change(context, async (stores, tell) => {
        const tenants = stores(tenantStore);
        const stored = await tenants.find(slug);
        if (stored?.display_name === displayName) return stored;
        const { before, after } = await tenants.save({
          id: newId(),
          slug,
          display_name: displayName,
          created_at: now(),
        });
        tell(changed(slug, before, after));
        return after;
      });
      return ok(describe(saved));
    },

    async remove(context, { params: { slug } }) {
      assertMayAddress(context.tenantId, slug, defaultTenantId);
      await audit.change(context, async (stores, tell) => {
        const removed = await stores(tenantStore).remove(slug);
        if (removed === undefined) throw notFound();
        tell(changed(slug, removed));
      });
      return noContent();
    },
  };
};
