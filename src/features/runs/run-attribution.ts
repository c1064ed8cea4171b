import type { Principal } from '../../core/context.ts';

/** Who a run is for, from the credential alone and never from the body. */
export const attributionOf = (principal: Principal) => ({
  userId: principal.userId,
  labels: principal.apiKey === null ? null : { apiKey: principal.apiKey.name.slice(0, 256) },
});
