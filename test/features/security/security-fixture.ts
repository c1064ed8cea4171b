import type { TestContext } from 'node:test';
import { isForEverybody } from '../../../src/contract/operation.ts';
import type { CallerRequest } from '../../../src/core/caller/caller-request.ts';
import type { RoleDecision } from '../../../src/core/caller/role-decision.ts';
import type { Caller } from '../../../src/core/context.ts';
import { createDispatch, type Reply } from '../../../src/core/dispatch.ts';
import { newId } from '../../../src/core/ids.ts';
import { type Logger, silentLogger } from '../../../src/core/logger.ts';
import { noTelemetry } from '../../../src/core/telemetry/telemetry.ts';
import type { RootStorage } from '../../../src/db/storage.ts';
import { createAuditLog } from '../../../src/features/audit/index.ts';
import { platformFeature } from '../../../src/features/platform/index.ts';
import { metaOperations } from '../../../src/features/platform/meta.operations.ts';
import { anonymousIsPossible, type IdentityOptions, securityFeature } from '../../../src/features/security/index.ts';
import { keyOperations } from '../../../src/features/security/keys.operations.ts';
import { incomingCall } from '../../support/incoming-call.ts';
import { instanceStateOf } from '../../support/instance-state.ts';
import { openTestStore } from '../../support/opened-store.ts';

export type Headers = Readonly<Record<string, string | readonly string[]>>;

/** A request as a transport shows it; from loopback to loopback unless told otherwise. */
export const request = (headers: Headers = {}, peerAddress = '127.0.0.1'): CallerRequest => {
  const all = new Map(
    Object.entries({ host: '127.0.0.1:7070', ...headers }).map(([name, value]) => [name, [value].flat()]),
  );
  return {
    peerAddress,
    method: 'GET',
    httpVersion: '1.1',
    path: '/api/agents',
    header: (name) => all.get(name)?.join(', '),
    headerCount: (name) => all.get(name)?.length ?? 0,
    hasHeader: (isSuch) => [...all.keys()].some(isSuch),
  };
};

export const localOptions: IdentityOptions = {
  allowRemoteAccess: false,
  anonymousLoopback: true,
  authToken: null,
  defaultTenantId: 'default',
  tenancy: { enabled: false, allowHeaderResolution: false, headerName: 'X-Service-Tenant', allowedTenants: [] },
  oidc: null,
};

export const withTenancy = (tenancy: Partial<IdentityOptions['tenancy']>, rest: Partial<IdentityOptions> = {}) => ({
  ...localOptions,
  ...rest,
  tenancy: { ...localOptions.tenancy, enabled: true, ...tenancy },
});

/** An event loop turn in which queued writes are committed. */
export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Identity, keys and meta on a real store, called through the dispatch, with a clock that the test turns. */
export const createHouse = async (
  t: TestContext,
  options: Partial<IdentityOptions> = {},
  shared: RootStorage | null = null,
  roles: RoleDecision | null = null,
) => {
  const storage = shared ?? (await openTestStore(t)).storage;
  const clock = { now: Date.parse('2030-01-01T00:00:00Z') };
  const all = { ...localOptions, ...options };
  const now = () => clock.now;
  const audit = createAuditLog({ storage, telemetry: noTelemetry(), log: silentLogger, now, newId });
  const warnings: { readonly fields: Record<string, unknown>; readonly message: string }[] = [];
  const log: Pick<Logger, 'warn'> = { warn: (fields, message) => void warnings.push({ fields, message }) };
  const state = instanceStateOf(shared === null, now);
  const security = securityFeature({ storage, state, options: all, roles, audit, log, now, newId });
  t.after(() => security.close());
  const platform = platformFeature({
    prefix: '',
    allowRemoteAccess: all.allowRemoteAccess,
    hasAuthToken: all.authToken !== null,
    hasIssuer: all.oidc !== null,
    hasActiveKey: security.hasActiveKey,
    anonymousIsPossible: anonymousIsPossible(all),
    storage: { provider: 'Memory', persistent: storage.persistent },
    jobWorkerEnabled: () => true,
    probeStore: () => storage.probe(),
    storeTrouble: () => null,
    sharing: null,
    migrating: false,
    modelsDegraded: () => false,
    lifecycle: { draining: false },
    now: () => clock.now,
  });
  const dispatch = createDispatch(
    { keys: keyOperations, meta: metaOperations },
    { keys: security.keys, meta: platform.meta },
  );
  const { identity } = security;

  const call = async (
    id: 'keys.list' | 'keys.create' | 'keys.remove' | 'keys.whoami' | 'meta.get',
    from: CallerRequest | Caller,
    input: { body?: unknown; params?: Record<string, string> } = {},
  ): Promise<Reply> => {
    const entry = dispatch.entries.find((candidate) => candidate.id === id);
    if (entry === undefined) throw new Error(`no operation ${id}`);
    const authenticate = (): Caller | Promise<Caller> => {
      if ('principal' in from) return from;
      return isForEverybody(entry.operation) ? identity.metaCaller(from) : identity.authenticate(from);
    };
    const reply = await dispatch.call(entry, incomingCall(entry, { ...input, authenticate }));
    if ('stream' in reply) throw new Error('not a stream');
    return reply;
  };

  const createKey = async (
    body: Record<string, unknown>,
    from: CallerRequest | Caller = admin(all.defaultTenantId),
  ) => {
    const reply = await call('keys.create', from, { body });
    return reply.body as { record: KeyRecord; plaintextKey: string };
  };
  const listKeys = async (from: CallerRequest | Caller = admin(all.defaultTenantId)) =>
    (await call('keys.list', from)).body as KeyRecord[];

  return { storage, clock, warnings, security, identity, call, createKey, listKeys };
};

export interface KeyRecord {
  readonly id: string;
  readonly tenantId: string;
  readonly name: string;
  readonly keyPrefix: string;
  readonly role: string;
  readonly scopes: readonly string[];
  readonly expiresAt: string | null;
  readonly revokedAt: string | null;
  readonly lastUsedAt: string | null;
  readonly createdBy: string | null;
  readonly createdAt: string;
  readonly isActive: boolean;
}

/** A caller with full authority in a tenant. */
export const admin = (tenantId: string): Caller => ({
  tenantId,
  principal: {
    kind: 'Token',
    role: 'Admin',
    scopes: null,
    actor: 'token',
    userId: null,
    apiKey: null,
    permissions: null,
  },
});

export const bearer = (credential: string): Headers => ({ authorization: `Bearer ${credential}` });
