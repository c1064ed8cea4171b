import type { Json } from './schema.ts';

/** Numbers of JSON-RPC 2.0, which every protocol on it shares. */
export const rpcCodes = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internalError: -32603,
} as const;

/** What names a request in its answer. */
export type RpcId = string | number;

export type RpcParams = Readonly<Record<string, Json>>;

export interface RpcRequest {
  readonly id: RpcId;
  readonly method: string;
  /** Empty where it was left out. */
  readonly params: RpcParams;
}

/** A message that nobody answers. */
export type RpcNotification = Omit<RpcRequest, 'id'>;

export type RpcMessage =
  | ({ readonly kind: 'request' } & RpcRequest)
  | ({ readonly kind: 'notification' } & RpcNotification)
  /** An answer to what this side would have asked. */
  | { readonly kind: 'answer' }
  /** No message of JSON-RPC; the id is null where it has none that is valid. `isObject`: one object could be read. */
  | { readonly kind: 'invalid'; readonly id: RpcId | null; readonly error: RpcError; readonly isObject: boolean };

export interface RpcErrorShape {
  readonly code: number;
  readonly message: string;
  readonly data?: Json;
}

/** What a caller is told of a request that failed, in the words of its protocol. */
export class RpcError extends Error {
  readonly code: number;
  readonly data: Json | undefined;

  constructor(code: number, message: string, data?: Json, options?: ErrorOptions) {
    super(message, options);
    this.name = 'RpcError';
    this.code = code;
    this.data = data;
  }

  get shape(): RpcErrorShape {
    const { code, message, data } = this;
    return data === undefined ? { code, message } : { code, message, data };
  }
}

export const rpcResult = (id: RpcId, result: unknown) => ({ jsonrpc: '2.0', id, result }) as const;

/** Without an id where the message had none that can be told. */
export const rpcFailure = (id: RpcId | null, error: RpcError) => ({ jsonrpc: '2.0', id, error: error.shape }) as const;

export const rpcNotification = (method: string, params: unknown) => ({ jsonrpc: '2.0', method, params }) as const;
