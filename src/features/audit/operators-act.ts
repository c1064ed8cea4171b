import type { Logger } from '../../core/logger.ts';
import { noTelemetry } from '../../core/telemetry/telemetry.ts';
import type { Storage } from '../../db/storage.ts';
import { createAuditLog } from './audit-log.ts';

/** What somebody does at the machine of the store with a command that no operation declares. */
export interface OperatorsAct {
  /** `<entity>.<verb>`. */
  readonly action: string;
  readonly id: string;
  readonly after: object;
}

export interface Operator {
  readonly tenantId: string;
  readonly actor: string | null;
  readonly log: Pick<Logger, 'error'>;
  /** Epoch milliseconds. */
  readonly now: () => number;
  readonly newId: () => string;
}

/** Writes an entry before the act; throws `audit-unavailable`, and then it does not take place. */
export const tellOperatorsAct = (
  storage: Storage,
  { tenantId, actor, log, now, newId }: Operator,
  { action, id, after }: OperatorsAct,
): Promise<void> =>
  createAuditLog({ storage, telemetry: noTelemetry(), log, now, newId }).tell(
    { tenantId, principal: { actor }, audit: { action, entity: action.split('.', 1)[0] ?? '', mode: 'fail-closed' } },
    { id, before: null, after },
  );
