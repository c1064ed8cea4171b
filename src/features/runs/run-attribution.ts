import type { Principal } from '../../core/context.ts';

/** Who a run is for, from the credential alone and never from the body. `ownerId`: `SessionTurns.ownerOf`. */
export const attributionOf = (principal: Principal, ownerId: string | null) => ({
  userId: principal.userId,
  ownerId,
  labels: principal.apiKey === null ? null : { apiKey: principal.apiKey.name.slice(0, 256) },
});
