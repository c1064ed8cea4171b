import { isRecord } from '../../../contract/record.ts';
import { parseForeignJson } from '../../../core/documents/foreign-json.ts';

export type RpcId = string | number;

export interface RpcRequest {
  readonly jsonrpc: '2.0';
  readonly id: RpcId;
  readonly method: string;
  readonly params?: Readonly<Record<string, unknown>>;
}

export interface RpcNotification {
  readonly jsonrpc: '2.0';
  readonly method: string;
  readonly params?: Readonly<Record<string, unknown>>;
}

export interface RpcFailure {
  readonly code: number;
  /** Of the other side: for the log alone. */
  readonly message: string;
  readonly data: unknown;
}

/** One message of the other side, read. */
export type RpcMessage =
  | { readonly kind: 'request'; readonly id: RpcId; readonly method: string; readonly params: unknown }
  | { readonly kind: 'notification'; readonly method: string; readonly params: unknown }
  | { readonly kind: 'result'; readonly id: RpcId; readonly result: Readonly<Record<string, unknown>> }
  /** An id of null: the other side could not tell which request it was. */
  | { readonly kind: 'error'; readonly id: RpcId | null; readonly error: RpcFailure };

const isId = (value: unknown): value is RpcId => typeof value === 'string' || Number.isSafeInteger(value);

const readError = (value: unknown): RpcFailure | null => {
  if (!isRecord(value)) return null;
  const { code, message, data } = value;
  if (!Number.isSafeInteger(code)) return null;
  return { code: Number(code), message: typeof message === 'string' ? message : '', data };
};

/** Null: it is no message of JSON-RPC 2.0, or a batch, which no revision that is spoken here has. */
const readMessage = (value: unknown): RpcMessage | null => {
  if (!isRecord(value) || value['jsonrpc'] !== '2.0') return null;
  const { id, method, params } = value;
  if (typeof method === 'string') {
    if (id === undefined) return { kind: 'notification', method, params };
    return isId(id) ? { kind: 'request', id, method, params } : null;
  }
  if ('error' in value) {
    const error = readError(value['error']);
    if (error === null) return null;
    return { kind: 'error', id: isId(id) ? id : null, error };
  }
  const { result } = value;
  return isId(id) && isRecord(result) ? { kind: 'result', id, result } : null;
};

/** The same of a text; null also for what is no JSON, nests too deep or holds too much. */
export const parseMessage = (text: string): RpcMessage | null => {
  try {
    return readMessage(parseForeignJson(text));
  } catch {
    // Half a message, a page of a proxy and a text of brackets mean the same to a caller that waits for a response.
    return null;
  }
};

/** What a server that asks something is told: that this side is there, and nothing else. */
export const answerTo = ({
  id,
  method,
}: Extract<RpcMessage, { kind: 'request' }>): Readonly<Record<string, unknown>> =>
  method === 'ping'
    ? { jsonrpc: '2.0', id, result: {} }
    : { jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' } };
