import { checkUrlTarget } from '../http/egress.ts';

export type EndpointProblem = { readonly code: 'validation-failed' | 'target-not-allowed'; readonly message: string };

/**
 * What keeps a tenant's own endpoint from being saved, and from being called: settings may be newer than what was saved.
 * Null: nothing. Host names are checked again at each connection.
 */
export const endpointProblem = (text: string, allowPrivate: boolean): EndpointProblem | null => {
  const invalid = (message: string): EndpointProblem => ({ code: 'validation-failed', message });
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !['https:', 'http:'].includes(url.protocol)) return invalid('must be an absolute https URL');
  if (url.protocol === 'http:' && !allowPrivate)
    return invalid('must be an https URL, unless Service:Egress:AllowPrivateNetworkTargets is on');
  if (url.username !== '' || url.password !== '') return invalid('must not hold a user name or password');
  if (url.hash !== '') return invalid('must not have a fragment');
  if (!allowPrivate && checkUrlTarget(url) === 'private')
    return { code: 'target-not-allowed', message: 'leads to an address that is not on the public internet' };
  return null;
};
