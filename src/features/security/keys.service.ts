import { type ApiKeyScope, type Role, roleAtLeast, roles } from '../../contract/authority.ts';
import { AcpError, invalidField } from '../../contract/errors.ts';
import { noContent, ok } from '../../contract/operation.ts';
import type { Handlers, Principal } from '../../core/context.ts';
import { isoTime, isoTimeOrNull } from '../../core/iso-time.ts';
import type { ApiKeyRow } from '../../db/tables/access.ts';
import type { AuditLog } from '../audit/index.ts';
import { apiKeyHash, apiKeyPrefix, newApiKey } from './key-format.rules.ts';
import type { KeyLookup } from './key-lookup.service.ts';
import type { keyOperations } from './keys.operations.ts';
import type { ApiKeyCreateRequest, ApiKeyRecord } from './keys.schema.ts';
import { authorityOf, type KeyStore, keyStore } from './keys.store.ts';
import { reasonsOf, type WhoamiRules } from './whoami.rules.ts';

export interface KeyServiceDeps {
  readonly store: KeyStore;
  readonly lookup: Pick<KeyLookup, 'changed'>;
  readonly audit: Pick<AuditLog, 'change'>;
  readonly now: () => number;
  readonly newId: () => string;
  readonly rules: WhoamiRules;
}

const toRecord = (row: ApiKeyRow, now: number): ApiKeyRecord => ({
  id: row.id,
  tenantId: row.tenant_id,
  name: row.name,
  keyPrefix: row.key_prefix,
  ...authorityOf(row),
  expiresAt: isoTimeOrNull(row.expires_at),
  revokedAt: isoTimeOrNull(row.revoked_at),
  lastUsedAt: isoTimeOrNull(row.last_used_at),
  createdBy: row.created_by,
  createdAt: isoTime(row.created_at),
  isActive: row.revoked_at === null && (row.expires_at === null || row.expires_at > now),
});

const operatorScopes: readonly ApiKeyScope[] = ['RunsWrite', 'ExternalInvoke', 'TracesWrite'];

/** The lowest role that can use all of the scopes. */
export const defaultRole = (scopes: readonly ApiKeyScope[]): Role => {
  if (scopes.some((scope) => scope.endsWith('Admin'))) return 'Admin';
  return operatorScopes.some((scope) => scopes.includes(scope)) ? 'Operator' : 'Reader';
};

const authorityNotHeld = (what: string): AcpError =>
  new AcpError('authority-not-held', `The caller cannot give a key the ${what}, which it lacks itself.`);

/** A caller hands out at most what it holds: otherwise a narrow key could make itself a wide one. */
export const grantedRole = (
  principal: Pick<Principal, 'role' | 'scopes'>,
  body: Pick<ApiKeyCreateRequest, 'role'>,
  scopes: readonly ApiKeyScope[],
): Role => {
  const missing = principal.scopes === null ? undefined : scopes.find((scope) => principal.scopes?.has(scope) !== true);
  if (missing !== undefined) throw authorityNotHeld(`scope ${missing}`);
  const own = principal.role ?? roles[0];
  const asked = body.role ?? null;
  if (asked !== null && !roleAtLeast(own, asked)) throw authorityNotHeld(`role ${asked}`);
  if (asked !== null) return asked;
  const usual = defaultRole(scopes);
  return roleAtLeast(own, usual) ? usual : own;
};

const expiryOf = (body: ApiKeyCreateRequest, now: number): number | null => {
  if (body.expiresAt === undefined || body.expiresAt === null) return null;
  const time = Date.parse(body.expiresAt);
  if (time > now) return time;
  throw invalidField('expiresAt', 'must be a time in the future');
};

export const keyService = ({
  store,
  lookup,
  audit,
  now,
  newId,
  rules,
}: KeyServiceDeps): Handlers<typeof keyOperations> => ({
  async list({ tenantId }) {
    const keys = await store.list(tenantId);
    const at = now();
    return ok(keys.map((key) => toRecord(key, at)));
  },

  async create(context, { body }) {
    const { tenantId, principal } = context;
    const at = now();
    const scopes = [...new Set(body.scopes)];
    const role = grantedRole(principal, body, scopes);
    const expiresAt = expiryOf(body, at);
    const plaintextKey = newApiKey(tenantId);
    const key: ApiKeyRow = {
      id: newId(),
      tenant_id: tenantId,
      name: body.name,
      key_hash: apiKeyHash(plaintextKey),
      key_prefix: apiKeyPrefix(plaintextKey),
      role,
      scopes: JSON.stringify(scopes),
      expires_at: expiresAt,
      revoked_at: null,
      last_used_at: null,
      created_by: principal.actor,
      created_at: at,
    };
    // In the order in which they were asked for.
    const after = { ...toRecord(key, at), scopes };
    await audit.change(context, async (stores, tell) => {
      await stores(keyStore).insert(key);
      tell({ id: key.id, before: null, after });
    });
    return ok({ record: after, plaintextKey }, { 'cache-control': 'no-store' });
  },

  async remove(context, { params }) {
    const { tenantId } = context;
    const id = params.id.toLowerCase();
    const at = now();
    const revoked = await audit.change(context, async (stores, tell) => {
      const key = await stores(keyStore).find(tenantId, id);
      if (key === undefined || !(await stores(keyStore).revoke(tenantId, id, at)))
        throw new AcpError('not-found', 'There is no active API key with this id.');
      // A revoked key stays readable, so that the entry has both states of it.
      tell({ id, before: toRecord(key, at), after: toRecord({ ...key, revoked_at: at }, at) });
      return key;
    });
    lookup.changed(revoked.key_hash);
    return noContent();
  },

  async whoami({ principal, tenantId }) {
    const { kind, role, scopes, actor, userId, apiKey } = principal;
    return ok({
      method: kind,
      tenantId,
      role,
      scopes: scopes === null ? null : [...scopes],
      actor,
      userId,
      apiKey,
      reasons: reasonsOf({ principal, tenantId }, rules),
    });
  },
});
