import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import type { Storage } from '../../db/storage.ts';
import { auditService } from './audit.service.ts';
import { auditReadingStore } from './audit-reading.store.ts';
import { signingKeyStore } from './signing-key.store.ts';
import { loadSigningKey, storedSigningKey } from './signing-key.ts';

export { reservedActions } from './audit-actions.rules.ts';
export { type AuditLog, type ChangedEntity, createAuditLog, type TellChange } from './audit-log.ts';
export { rawPublicKey } from './export-format.ts';
export { type ExportVerification, verifyExport } from './export-reader.ts';
export { tellOperatorsAct } from './operators-act.ts';
export { signingKeyMove } from './signing-key-move.ts';
export { type TrailVerification, verifyTrails } from './trail-check.ts';

export interface AuditDeps {
  readonly storage: Storage;
  /** Null: there is no file beside the store. */
  readonly signingKeyFile: string | null;
  /** True: several processes have the store, and the key lies in it. */
  readonly shared: boolean;
  readonly telemetry: Telemetry;
  readonly now: () => number;
}

const keySource = ({ storage, signingKeyFile, shared }: Pick<AuditDeps, 'storage' | 'signingKeyFile' | 'shared'>) => {
  if (signingKeyFile !== null) return () => loadSigningKey(signingKeyFile);
  // A store that is gone with its process signs nothing.
  return shared ? () => storedSigningKey(storage.stores(signingKeyStore)) : null;
};

/** The reading side of the trail; `createAuditLog` is the writing one. */
export const auditFeature = ({ storage, signingKeyFile, shared, ...deps }: AuditDeps) => ({
  handlers: auditService({
    ...deps,
    store: storage.stores(auditReadingStore),
    signingKey: keySource({ storage, signingKeyFile, shared }),
  }),
});
