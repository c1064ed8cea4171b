import { AcpError } from '../contract/errors.ts';
import { RpcError, type RpcId, type RpcMessage, type RpcParams, rpcCodes } from '../contract/json-rpc.ts';
import type { UnreadCall } from './context.ts';
import { parseJsonBody, requireJsonType } from './documents/json-body.ts';

/** What a door to a protocol on JSON-RPC reads of the headers of a call. */
export interface RpcHeaders {
  readonly accept?: string;
  readonly 'content-type'?: string;
}

const isObject = (value: unknown): value is RpcParams =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isId = (value: unknown): value is RpcId => typeof value === 'string' || Number.isSafeInteger(value);

/** Weight 0 says that a type is not wanted. */
const isRefused = (parameters: readonly string[]): boolean =>
  parameters.some((parameter) => /^\s*q\s*=\s*0(?:\.0*)?\s*$/i.test(parameter));

/** Whether an answer of this type may be given; without the header any may. */
export const accepts = (accept: string | undefined, type: string): boolean => {
  if (accept === undefined) return true;
  const family = `${type.slice(0, type.indexOf('/'))}/*`;
  return accept.split(',').some((range) => {
    const [name = '', ...parameters] = range.split(';');
    const asked = name.trim().toLowerCase();
    return (asked === type || asked === family || asked === '*/*') && !isRefused(parameters);
  });
};

const invalid = (id: unknown, code: number, message: string, isObject = true): RpcMessage => ({
  kind: 'invalid',
  id: isId(id) ? id : null,
  error: new RpcError(code, message),
  isObject,
});

/** Which message of JSON-RPC 2.0 a value is. */
const rpcMessage = (value: unknown): RpcMessage => {
  if (Array.isArray(value))
    return invalid(null, rpcCodes.invalidRequest, 'Batches are not served: send one message.', false);
  if (!isObject(value)) return invalid(null, rpcCodes.invalidRequest, 'A message is an object.', false);
  const { jsonrpc, method: named } = value;
  // Programs that send every property send null for those that a message does not have.
  const method = named ?? undefined;
  const params = value['params'] ?? {};
  const isNotification = typeof method === 'string' && method.startsWith('notifications/');
  const id = isNotification ? (value['id'] ?? undefined) : value['id'];
  if (jsonrpc !== '2.0') return invalid(id, rpcCodes.invalidRequest, 'jsonrpc must be "2.0".');
  if (method === undefined && isId(id) && ('result' in value || 'error' in value)) return { kind: 'answer' };
  if (typeof method !== 'string' || method === '')
    return invalid(id, rpcCodes.invalidRequest, 'method must be the name of a method.');
  if (id !== undefined && !isId(id)) return invalid(null, rpcCodes.invalidRequest, 'id must be a text or an integer.');
  if (!isObject(params)) return invalid(id, rpcCodes.invalidParams, 'params must be an object.');
  return id === undefined ? { kind: 'notification', method, params } : { kind: 'request', id, method, params };
};

/**
 * The one message that a call brings. Throws only what HTTP has a status for: `unsupported-media-type`, `not-acceptable`
 * and `payload-too-large`.
 */
export const readRpcMessage = async (
  { readBody }: UnreadCall,
  headers: RpcHeaders,
  maxBytes: number,
  types: readonly string[] = ['application/json'],
): Promise<RpcMessage> => {
  requireJsonType(headers['content-type']);
  if (!types.some((type) => accepts(headers.accept, type)))
    throw new AcpError('not-acceptable', `Accept must name ${types.join(' or ')}.`);
  const body = await readBody(maxBytes);
  try {
    return rpcMessage(parseJsonBody(body));
  } catch (error) {
    if (!(error instanceof AcpError)) throw error;
    const code = error.code === 'malformed-json' ? rpcCodes.parseError : rpcCodes.invalidRequest;
    return invalid(null, code, error.message, false);
  }
};
