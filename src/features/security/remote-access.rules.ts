import type { IdentityOptions } from './identity.service.ts';
import type { KeyStore } from './keys.store.ts';

/**
 * What forbids this start, as a sentence; null when nothing does. Opening the service to other machines without any
 * credential that could tell callers apart is refused.
 */
export const remoteAccessProblem = async (
  options: Pick<IdentityOptions, 'allowRemoteAccess' | 'authToken'>,
  keys: Pick<KeyStore, 'hasActive'>,
  now: number,
): Promise<string | null> => {
  if (!options.allowRemoteAccess || options.authToken !== null || (await keys.hasActive(now))) return null;
  return 'Host:AllowRemoteAccess needs Host:AuthToken or an active API key; make one with "acp keys create" first.';
};
