import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import type { Storage } from '../../db/storage.ts';
import { auditService } from './audit.service.ts';
import { auditReadingStore } from './audit-reading.store.ts';
import { loadSigningKey } from './signing-key.ts';

export { reservedActions } from './audit-actions.rules.ts';
export { type AuditLog, type ChangedEntity, createAuditLog, type TellChange } from './audit-log.ts';
export { rawPublicKey } from './export-format.ts';
export { type ExportVerification, verifyExport } from './export-reader.ts';
export { type TrailVerification, verifyTrails } from './trail-check.ts';

export interface AuditDeps {
  readonly storage: Storage;
  /** Null: the store keeps no key, so that nothing can be signed. */
  readonly signingKeyFile: string | null;
  readonly telemetry: Telemetry;
  readonly now: () => number;
}

/** The reading side of the trail; `createAuditLog` is the writing one. */
export const auditFeature = ({ storage, signingKeyFile, ...deps }: AuditDeps) => ({
  handlers: auditService({
    ...deps,
    store: storage.stores(auditReadingStore),
    signingKey: signingKeyFile === null ? null : () => loadSigningKey(signingKeyFile),
  }),
});
