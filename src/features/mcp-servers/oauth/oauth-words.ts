import { AcpError } from '../../../contract/errors.ts';
import { OutboundError } from '../../../providers/http/outbound-error.ts';
import type { OAuthFailure, OAuthReason, OAuthStep } from '../../../providers/mcp/oauth/oauth-failure.ts';

const steps: Readonly<Record<OAuthStep, string>> = {
  'resource-metadata': 'the metadata of the server (RFC 9728)',
  'server-metadata': 'the metadata of its authorization server (RFC 8414)',
  registration: 'the registration of this service at its authorization server (RFC 7591)',
  token: 'the token endpoint of its authorization server',
  revocation: 'the revocation endpoint of its authorization server',
};

const reasons: Readonly<Record<OAuthReason, string>> = {
  unreachable: 'did not answer',
  status: 'answered with an HTTP status that is no success',
  'not-json': 'is no JSON object',
  'wrong-resource': 'is of another server',
  'no-authorization-server': 'names no authorization server',
  'wrong-issuer': 'names another issuer than the one that was asked',
  'unsafe-address': 'leads to an address that is not https',
  incomplete: 'lacks something that is needed',
  'no-pkce': 'does not offer PKCE with S256',
  'no-client': 'offers no registration, and the record names no client (oauthClientId)',
  'no-client-secret': 'needs the secret of the client, whose key has no value',
  'no-client-authentication': 'knows no way of client authentication that is known here',
  refused: 'has refused',
};

/** What came to nothing, in words that nobody else has chosen. */
export const oauthProblem = ({ step, reason, status, oauthError, cause }: OAuthFailure): string => {
  const number = status === null ? '' : ` (HTTP ${status}${oauthError === null ? '' : `, ${oauthError}`})`;
  const why = cause instanceof OutboundError ? `: ${cause.message.toLowerCase().replace(/\.$/, '')}` : '';
  return `${steps[step]} ${reasons[reason]}${number}${why}`;
};

/** As callers are told of it. */
export const oauthError = (server: string, failure: OAuthFailure): AcpError => {
  const { reason } = failure;
  const message = `The MCP server "${server}" cannot be authorized: ${oauthProblem(failure)}.`;
  const isOurs = reason === 'no-client' || reason === 'no-client-secret';
  return new AcpError(isOurs ? 'oauth-client-missing' : 'mcp-server-failed', message, { cause: failure });
};
