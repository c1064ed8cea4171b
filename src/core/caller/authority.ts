import { type Role, roleAtLeast } from '../../contract/authority.ts';
import { AcpError } from '../../contract/errors.ts';
import type { Operation, RaisedAuthority } from '../../contract/operation.ts';
import type { Principal } from '../context.ts';

/** Throws what a caller without the role or the scope gets. */
export const requireAuthority = (
  { role: held, scopes }: Pick<Principal, 'role' | 'scopes'>,
  role: Role,
  scope: Operation['scope'],
  what = 'This operation',
): void => {
  if (held === null || !roleAtLeast(held, role))
    throw new AcpError('insufficient-role', `${what} needs the role ${role}.`, {
      details: { requiredRole: role },
    });
  if (scope === null || scopes === null) return;
  const missing =
    typeof scope === 'string' ? (scopes.has(scope) ? undefined : scope) : scope.find((one) => !scopes.has(one));
  if (missing !== undefined)
    throw new AcpError('insufficient-scope', `${what} needs the scope ${missing}.`, {
      details: { requiredScope: missing },
    });
};

const says = (value: unknown, raised: Pick<RaisedAuthority, 'member' | 'value'>, at = 0): boolean => {
  if (Array.isArray(value)) return value.some((element) => says(element, raised, at));
  if (at === raised.member.length) return value === raised.value;
  const next =
    typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[raised.member[at] ?? ''] : null;
  return next !== undefined && next !== null && says(next, raised, at + 1);
};

/** The authority that is needed beyond the operation's own, where the body says so. */
export const requireRaised = (principal: Principal, raised: readonly RaisedAuthority[], body: unknown): void => {
  for (const more of raised)
    if (says(body, more))
      requireAuthority(principal, more.role, more.scope ?? null, `${more.member.join('.')} ${more.value}`);
};
