import { AcpError, invalidField } from '../../contract/errors.ts';
import { mayNameSecret, type SecretNameRule, secretPrefix } from '../../core/config/index.ts';
import { isConnectionHeader, isCredentialHeader } from '../../providers/http/connection-headers.ts';
import { checkUrlTarget } from '../../providers/http/egress.ts';
import type { McpServerRequest } from './mcp-servers.schema.ts';

export interface ServerRules {
  readonly names: SecretNameRule;
  readonly allowPrivate: boolean;
}

/** A record as it was saved, with every default applied. */
export type ServerSettings = {
  readonly [K in keyof Required<Omit<McpServerRequest, 'enabled'>>]: Exclude<McpServerRequest[K], undefined>;
};

const credentialWord = /secret|token|password|apikey/;
const protocolHeaders: ReadonlySet<string> = new Set([
  'origin',
  'accept',
  'last-event-id',
  'traceparent',
  'tracestate',
  'baggage',
]);
// RFC 9110, section 5.6.2.
const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const printable = /^[\x20-\x7e]*$/;

/** What is wrong with the address of another system, to be read behind its name; null: nothing. */
export const endpointProblem = (text: string): string | null => {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || url.hostname === '') return 'must be an absolute http or https URL';
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'must be an http or https URL';
  if (url.username !== '' || url.password !== '') return 'must not hold a user name or password';
  // One that is empty is a fragment, too.
  return text.includes('#') ? 'must not have a fragment' : null;
};

/** Whether nothing may be sent to an address because it is none of the public internet. */
export const isRefusedTarget = (url: URL, allowPrivate: boolean): boolean =>
  !allowPrivate && checkUrlTarget(url) === 'private';
export const refusedTarget = 'leads to an address that is not on the public internet';

const checkedEndpoint = (text: string, allowPrivate: boolean): URL => {
  const problem = endpointProblem(text);
  if (problem !== null) throw invalidField('endpoint', problem);
  const url = new URL(text);
  if (isRefusedTarget(url, allowPrivate)) throw invalidField('endpoint', refusedTarget, 'target-not-allowed');
  return url;
};

const checkHeaders = (headers: Readonly<Record<string, string>>): void => {
  const names = new Set<string>();
  for (const [name, value] of Object.entries(headers)) {
    const path = `headers.${name}`;
    const lower = name.toLowerCase();
    if (!token.test(name)) throw invalidField(path, 'must be an HTTP header name');
    if (isCredentialHeader(name) || credentialWord.test(lower.replaceAll(/[-_]/g, '')))
      throw invalidField(path, 'must not carry a credential, which authorizationConfigurationKey is for');
    if (
      isConnectionHeader(name) ||
      protocolHeaders.has(lower) ||
      lower.startsWith('content-') ||
      lower.startsWith('mcp-')
    )
      throw invalidField(path, 'is set by the protocol');
    if (names.has(lower)) throw invalidField(path, 'is named twice');
    if (!printable.test(value)) throw invalidField(path, 'must be printable ASCII characters');
    names.add(lower);
  }
};

const isLoopback = (url: URL): boolean => {
  const host = url.hostname.replace(/^\[|\]$/g, '').toLowerCase();
  return host === 'localhost' || host.endsWith('.localhost') || host === '::1' || /^127\./.test(host);
};

const checkKey = (names: SecretNameRule, tenantId: string, member: string, key: string | null): void => {
  if (key === null || mayNameSecret(names, tenantId, key)) return;
  throw new AcpError('configuration-key-not-allowed', `${member} must start with ${secretPrefix(names, tenantId)}`);
};

const defaults: Omit<ServerSettings, 'endpoint'> = {
  description: null,
  transport: 'StreamableHttp',
  protocol: 'Auto',
  authorizationConfigurationKey: null,
  headers: {},
  requiresApproval: true,
  tools: null,
  pinning: 'Warn',
  effects: {},
  oauthEnabled: false,
  oauthClientId: null,
  oauthClientSecretConfigurationKey: null,
  oauthScopes: null,
  oauthAuthorizationMode: 'AuthorizationCode',
  labels: {},
};

const withDefaults = ({ enabled: _enabled, ...body }: McpServerRequest): ServerSettings => {
  const given = Object.entries(body).filter(([, value]) => value !== undefined && value !== null);
  return { ...defaults, ...Object.fromEntries(given), endpoint: body.endpoint };
};

const programScheme = 'stdio:';

/** Whether a record is of a program that the host starts: no other has such an endpoint, which the API refuses. */
export const isProgram = ({ endpoint }: Pick<ServerSettings, 'endpoint'>): boolean =>
  endpoint.startsWith(programScheme);

/** The record of a program. */
export const programSettings = (
  name: string,
  more: Pick<ServerSettings, 'protocol' | 'requiresApproval' | 'effects' | 'pinning'>,
): ServerSettings => ({ ...defaults, ...more, endpoint: `${programScheme}${name}` });

/** Whether a credential may be sent there. */
export const isSafeForCredentials = (url: URL, allowPrivate: boolean): boolean =>
  url.protocol === 'https:' || (url.protocol === 'http:' && allowPrivate && isLoopback(url));

/** Throws `validation-failed`, `target-not-allowed` or `configuration-key-not-allowed`. */
export const askedServer = (
  tenantId: string,
  body: McpServerRequest,
  { names, allowPrivate }: ServerRules,
): ServerSettings => {
  const url = checkedEndpoint(body.endpoint, allowPrivate);
  checkHeaders(body.headers ?? {});
  const settings = withDefaults(body);
  const { authorizationConfigurationKey: key, oauthClientSecretConfigurationKey: secretKey, oauthEnabled } = settings;
  checkKey(names, tenantId, 'authorizationConfigurationKey', key);
  checkKey(names, tenantId, 'oauthClientSecretConfigurationKey', secretKey);
  if (settings.transport === 'Sse' && settings.protocol === 'Stateless')
    throw invalidField(
      'protocol',
      'must not be Stateless with the transport Sse, which is of the handshake generation',
    );
  if (oauthEnabled && key !== null)
    throw invalidField('authorizationConfigurationKey', 'must be left out where oauthEnabled is true');
  const hasCredential = oauthEnabled || key !== null || secretKey !== null;
  if (hasCredential && !isSafeForCredentials(url, allowPrivate))
    throw invalidField('endpoint', 'must be https where a credential is sent to it');
  return settings;
};
