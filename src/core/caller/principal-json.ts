import type { Json } from '../../contract/schema.ts';
import type { Principal } from '../context.ts';

const sorted = (values: ReadonlySet<string> | null): string[] | null => (values === null ? null : [...values].sort());

/** The principal as plain JSON, so that a module sees data and never the service's own objects. */
export const principalJson = (principal: Principal): Json => ({
  kind: principal.kind,
  role: principal.role,
  scopes: sorted(principal.scopes),
  actor: principal.actor,
  userId: principal.userId,
  apiKey: principal.apiKey === null ? null : { id: principal.apiKey.id, name: principal.apiKey.name },
  permissions: sorted(principal.permissions),
});
