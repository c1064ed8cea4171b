import type { AuditTrail } from '../../core/audit.ts';
import type { Logger } from '../../core/logger.ts';
import type { Storage } from '../../db/storage.ts';
import { createIdentity, type IdentityOptions } from './identity.service.ts';
import { keyLookup } from './key-lookup.service.ts';
import { keyService } from './keys.service.ts';
import { keyStore } from './keys.store.ts';

export interface SecurityDeps {
  readonly storage: Storage;
  readonly options: IdentityOptions;
  readonly audit: Pick<AuditTrail, 'record'>;
  readonly log: Pick<Logger, 'warn'>;
  /** Epoch milliseconds. */
  readonly now: () => number;
}

/** Who may call: identity for the transports and the API keys. */
export const securityFeature = ({ storage, options, audit, log, now }: SecurityDeps) => {
  const store = keyStore(storage);
  const lookup = keyLookup({ store, now, log });
  return {
    identity: createIdentity({ options, keys: lookup }),
    keys: keyService({ store, lookup, audit, now }),
    hasActiveKey: (): Promise<boolean> => store.hasActive(now()),
  };
};

export { anonymousIsPossible, type Identity, type IdentityOptions } from './identity.service.ts';
