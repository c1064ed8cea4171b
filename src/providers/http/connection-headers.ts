/**
 * Header names, in lower case, that belong to one HTTP connection or frame its message (RFC 9110, sections 7.6.1, 7.8, 8.6
 * and 10.1). The HTTP client sets them; a value that a user configures would break the request.
 */
const connectionHeaders: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** Whether a header belongs to the connection and not to the message; in any letter case. */
export const isConnectionHeader = (name: string): boolean => {
  const lower = name.toLowerCase();
  return connectionHeaders.has(lower) || lower === 'proxy-connection';
};

/** Header names, in lower case, that carry credentials. */
const credentialHeaders: ReadonlySet<string> = new Set([
  'authorization',
  'cookie',
  'proxy-authorization',
  'set-cookie',
  'x-api-key',
]);

/** Whether a header carries credentials, which are configured as references and never as values; in any letter case. */
export const isCredentialHeader = (name: string): boolean => credentialHeaders.has(name.toLowerCase());
