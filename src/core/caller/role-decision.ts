import type { Role } from '../../contract/authority.ts';
import type { Principal } from '../context.ts';

/**
 * The host's decision about the role of a principal that its identity provider knows (SEC-20), in place of the role
 * claim; null: none. Rejects with `identity-unavailable` when it cannot tell.
 */
export type RoleDecision = (principal: Principal, claims: Readonly<Record<string, unknown>>) => Promise<Role | null>;
