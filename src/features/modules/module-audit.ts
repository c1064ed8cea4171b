import { tenantPattern } from '../../contract/schema.ts';
import type { AuditedCall } from '../../core/context.ts';
import { type AuditLog, type ChangedEntity, reservedActions } from '../audit/index.ts';

/** What a module writes into the trail of a tenant. Id, time and hash are the trail's own. */
export interface ModuleAuditEntry {
  readonly tenantId: string;
  /** 1 to 64 of `a-z 0-9 . -`, a letter first; none of the service's own. */
  readonly action: string;
  /** `<type>:<id>`, at most 256 characters. */
  readonly entity: string;
  /** Who did it; left out: `module:{name}`. Null: nobody in particular. */
  readonly actor?: string | null;
  /** Plain data; values under names of secrets are masked. */
  readonly before?: object | null;
  readonly after?: object | null;
}

/** What a module's function gets of the service. */
export interface ModuleHost {
  readonly audit: {
    /** Resolves once the entry stands; rejects when it is not in order or the trail cannot be written. */
    record(entry: ModuleAuditEntry): Promise<void>;
  };
}

/** The trail opens with the store, after the modules were loaded. */
export interface LateAudit {
  /** Null until the store is open. */
  trail: Pick<AuditLog, 'tell'> | null;
}

const actionPattern = /^[a-z][a-z0-9.-]{0,63}$/;
const tenant = new RegExp(tenantPattern);
const entityPattern = /^[^:\s]+:.+$/su;
const maxDataLength = 65_536;

const refuse = (field: string, message: string): never => {
  throw new TypeError(`An audit entry of a module is not in order: ${field} ${message}.`);
};

const textOf = (field: string, value: unknown, pattern: RegExp, allowed: string): string =>
  typeof value === 'string' && value.length <= 256 && pattern.test(value) ? value : refuse(field, allowed);

/** A copy: what the module does with its object later is not in the trail. */
const dataOf = (field: string, value: unknown): object | null => {
  if (value === undefined || value === null) return null;
  if (typeof value !== 'object') return refuse(field, 'must be an object or null');
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch {
    // It contains itself, or a value that JSON cannot hold.
    return refuse(field, 'must be plain data');
  }
  if (text === undefined) return refuse(field, 'must be plain data');
  if (text.length > maxDataLength) return refuse(field, `must have at most ${maxDataLength} characters as JSON`);
  return JSON.parse(text) as object;
};

const actionOf = (value: unknown): string => {
  const action = textOf('action', value, actionPattern, 'must be 1 to 64 of a-z 0-9 . -, starting with a letter');
  return reservedActions.has(action) ? refuse('action', `must not be ${action}, which is the service's own`) : action;
};

/** Any value: a module is not type-checked at run time. */
const entryOf = (written: unknown, moduleName: string): [AuditedCall, ChangedEntity] => {
  const entry = (typeof written === 'object' ? written : null) ?? refuse('it', 'must be an object');
  const { tenantId, action, entity, actor, before, after } = entry as Readonly<Record<string, unknown>>;
  const call = {
    tenantId: textOf('tenantId', tenantId, tenant, 'must be the id of a tenant'),
    action: actionOf(action),
    entity: textOf('entity', entity, entityPattern, 'must be <type>:<id>, at most 256 characters'),
    actor:
      actor === undefined
        ? `module:${moduleName}`
        : actor === null
          ? null
          : textOf('actor', actor, /./su, 'must be a text of 1 to 256 characters, or null'),
  };
  const colon = call.entity.indexOf(':');
  const audit = { action: call.action, entity: call.entity.slice(0, colon), mode: 'fail-closed' } as const;
  return [
    { tenantId: call.tenantId, principal: { actor: call.actor }, audit },
    { id: call.entity.slice(colon + 1), before: dataOf('before', before), after: dataOf('after', after) },
  ];
};

/** What one module gets; its name is known once it is loaded. */
export const moduleHost = (audit: LateAudit, name: () => string): ModuleHost => ({
  audit: {
    async record(entry) {
      const [call, entity] = entryOf(entry, name());
      if (audit.trail === null) throw new Error('The audit trail opens once the modules are loaded.');
      await audit.trail.tell(call, entity);
    },
  },
});
