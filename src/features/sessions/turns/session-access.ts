import { type Role, roleAtLeast } from '../../../contract/authority.ts';
import { AcpError } from '../../../contract/errors.ts';
import type { Principal } from '../../../core/context.ts';

export interface SessionOwnershipSettings {
  readonly Enabled: boolean;
  readonly RequireAuthenticatedOwner: boolean;
  readonly RefuseUnownedSessions: boolean;
  readonly ManagementRole: Role;
}

type Caller = Pick<Principal, 'role' | 'userId' | 'apiKey' | 'unattended'>;

/** The subject of a person, or the key; null for callers without identity, such as the shared token. */
const identityOf = ({ userId, apiKey }: Caller): string | null =>
  userId ?? (apiKey === null ? null : `apikey:${apiKey.id}`);

// No identity is empty, so that nothing is found by it.
const nobody = '';

/** Who may see and use what sessions hold and leave behind. While ownership is off, everybody may everything. */
export const createSessionAccess = (settings: SessionOwnershipSettings) => {
  const { Enabled: enabled } = settings;
  const manages = ({ role }: Caller): boolean => role !== null && roleAtLeast(role, settings.ManagementRole);
  /** Sessions from the time before ownership, and of callers without identity where those may open some. */
  const mayUseUnowned = (caller: Caller): boolean =>
    !settings.RefuseUnownedSessions || caller.unattended === true || manages(caller);
  return {
    enabled,
    /** Whose a run outside of a session is; null: nobody's. */
    callerOwner: (caller: Caller): string | null => (enabled ? identityOf(caller) : null),
    /** Whose a session is that this caller opens. Throws `session-owner-required`. */
    newOwner(caller: Caller): string | null {
      if (!enabled) return null;
      const owner = identityOf(caller);
      if (owner === null && settings.RequireAuthenticatedOwner && caller.unattended !== true)
        throw new AcpError('session-owner-required', 'Only a caller with an identity can open a session.', {
          details: { errorType: 'session_owner_required' },
        });
      return owner;
    },
    /** The only owner whose sessions and runs stand in this caller's lists; null: all of the tenant's. */
    listOwner: (caller: Caller): string | null => (!enabled || manages(caller) ? null : (identityOf(caller) ?? nobody)),
    /** Whether reads find it; what they do not find is answered as unknown. */
    maySee(caller: Caller, ownerId: string | null): boolean {
      if (!enabled || manages(caller)) return true;
      return ownerId === null ? mayUseUnowned(caller) : ownerId === identityOf(caller);
    },
    /** Throws `session-not-owned`: even a manager runs only on sessions of its own. */
    assertMayRun(caller: Caller, sessionId: string, ownerId: string | null): void {
      if (!enabled) return;
      if (ownerId === null ? mayUseUnowned(caller) : ownerId === identityOf(caller)) return;
      throw new AcpError('session-not-owned', `Session "${sessionId}" belongs to somebody else.`);
    },
  };
};

export type SessionAccess = ReturnType<typeof createSessionAccess>;
