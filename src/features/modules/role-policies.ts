import { type Role, roles } from '../../contract/authority.ts';
import type { RoleDecision } from '../../core/caller/role-decision.ts';
import type { Logger } from '../../core/logger.ts';
import { withDeadline } from '../../engine/tools/index.ts';
import { answerWithinMs, failureOf, identityUnavailable } from './host-answers.ts';

/** Whom a role policy is asked about. */
export interface RolePolicyRequest {
  readonly kind: string;
  /** Subject of the token. */
  readonly userId: string | null;
  /** Name in the audit trail. */
  readonly actor: string | null;
  /** All claims of the token, checked. */
  readonly claims: Readonly<Record<string, unknown>>;
}

/** True: the caller has the role, and with it the lower ones. Throwing, or taking more than 5 s, refuses the request. */
export type RolePolicy = (request: RolePolicyRequest, signal: AbortSignal) => boolean | Promise<boolean>;

const never = new AbortController().signal;

/** Roles whose policy no module brings. */
export const missingRolePolicies = (policies: ReadonlyMap<string, RolePolicy>): readonly Role[] =>
  roles.filter((role) => !policies.has(role));

/** The policies as the port that credentials are checked through: asked from the highest role down. */
export const hostRoleDecision = (
  policies: ReadonlyMap<string, RolePolicy>,
  log: Pick<Logger, 'warn'>,
): RoleDecision => {
  const ask = async (role: Role, request: RolePolicyRequest): Promise<boolean> => {
    const policy = policies.get(role);
    if (policy === undefined) return false;
    const end = await withDeadline(async (signal) => policy(request, signal), answerWithinMs, never);
    // Only a plain true opens: a module is not type-checked at run time.
    if (end.kind === 'returned') return end.value === true;
    log.warn({ role, ...failureOf(end) }, 'A role policy failed, so the request was refused');
    throw identityUnavailable('The role of the caller cannot be decided now.');
  };
  return async ({ kind, userId, actor }, claims) => {
    for (const role of roles.toReversed()) {
      // A copy each: one policy must not change what the next one sees.
      if (await ask(role, { kind, userId, actor, claims: structuredClone(claims) })) return role;
    }
    return null;
  };
};
