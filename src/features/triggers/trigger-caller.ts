import { randomBytes } from 'node:crypto';
import { AcpError } from '../../contract/errors.ts';
import { namePattern, tenantPattern } from '../../contract/schema.ts';
import type { Config } from '../../core/config/index.ts';
import type { Logger } from '../../core/logger.ts';
import type { SignatureWindow } from '../../core/standard-webhooks.ts';
import type { SignedHeaders, WebhookSchemeName, webhookScheme } from '../../core/webhook-schemes.ts';
import type { TriggerRow } from '../../db/tables/arriving-work.ts';
import type { TriggerSecrets } from './trigger-secrets.ts';
import type { TriggerStore } from './triggers.store.ts';

export interface TriggerCallerDeps {
  readonly store: Pick<TriggerStore, 'find'>;
  readonly secrets: Pick<TriggerSecrets, 'of'>;
  readonly schemes: typeof webhookScheme;
  readonly config: {
    readonly Service: Pick<Config['Service'], 'DefaultTenantId' | 'Webhooks'>;
    readonly Host: Pick<Config['Host'], 'Tenancy'>;
  };
  readonly log: Pick<Logger, 'warn'>;
  /** Epoch milliseconds that processes agree on. */
  readonly now: () => number;
}

/** A call as it was sent. */
export interface TriggerCall {
  readonly requestId: string;
  readonly tenantId: string;
  readonly name: string;
  readonly headers: SignedHeaders;
  readonly body: Uint8Array;
}

export const schemeOf = ({ scheme }: Pick<TriggerRow, 'scheme'>): WebhookSchemeName => scheme as WebhookSchemeName;

// As much of what somebody has made up as a log line needs.
const toldCharacters = 128;

/** The answer to whoever has not proven who calls; the log has the reason. */
export const unauthenticated = (
  log: Pick<Logger, 'warn'>,
  { requestId, tenantId, name }: Pick<TriggerCall, 'requestId' | 'tenantId' | 'name'>,
  reason: string | null,
  message: string,
): AcpError => {
  log.warn(
    { requestId, tenantId: tenantId.slice(0, toldCharacters), trigger: name.slice(0, toldCharacters), reason },
    message,
  );
  return new AcpError('unauthenticated', 'The call is not authenticated.');
};

const nameForm = new RegExp(namePattern);
const tenantForm = new RegExp(tenantPattern);
/** Whose calls count. */
export const createTriggerCaller = ({ store, secrets, schemes, config, log, now }: TriggerCallerDeps) => {
  const { Tenancy } = config.Host;
  const { DefaultTenantId: defaultTenantId, Webhooks } = config.Service;
  const allowedTenants = new Set(Tenancy.AllowedTenants);
  const window = (): SignatureWindow => ({ now: now(), toleranceMs: Webhooks.SignatureTolerance });
  // Nobody's: what is compared where there is nothing to compare with.
  const decoy = [randomBytes(32).toString('hex')];

  const hindrance = (tenantId: string): string | null => {
    if (!Tenancy.Enabled && tenantId !== defaultTenantId) return 'tenancy is off';
    if (allowedTenants.size > 0 && !allowedTenants.has(tenantId)) return 'the tenant is not allowed';
    return null;
  };

  /**
   * The trigger of a call that its sender has signed. Throws `unauthenticated`, the same for every reason, which the log
   * alone has. A signature over the body is computed in each case, so that the time of an answer tells nobody which
   * triggers there are.
   */
  return async ({ requestId, tenantId, name, headers, body }: TriggerCall): Promise<TriggerRow> => {
    const isPossible = tenantForm.test(tenantId) && nameForm.test(name);
    const row = isPossible ? await store.find(tenantId, name) : undefined;
    const values = row === undefined ? [] : secrets.of(row);
    const scheme = schemes[row === undefined ? 'standard' : schemeOf(row)];
    const fault = scheme.fault(values.length === 0 ? decoy : values, headers, body, window());
    const reason =
      hindrance(tenantId) ??
      (row === undefined ? 'there is no such trigger' : null) ??
      (row?.enabled === 0 ? 'the trigger is disabled' : null) ??
      (values.length === 0 ? 'its secret has no value, or may not be named' : fault);
    if (row !== undefined && reason === null) return row;
    throw unauthenticated(log, { requestId, tenantId, name }, reason, 'A call of a trigger was not authenticated');
  };
};

export type TriggerCaller = ReturnType<typeof createTriggerCaller>;
