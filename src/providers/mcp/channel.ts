import type { RpcId, RpcNotification, RpcRequest } from './wire/json-rpc.ts';

export interface SendOptions {
  readonly headers: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs: number;
  /** True: what the server asks meanwhile is refused; else it is not answered, since nobody has asked for an answer. */
  readonly answersRequests: boolean;
}

export interface Answer {
  readonly result: Readonly<Record<string, unknown>>;
  /** Of the HTTP answer, in lower case. */
  readonly headers: Readonly<Record<string, string>>;
}

/** A way to a server. Both throw McpFailure only. */
export interface Channel {
  request(message: RpcRequest, options: SendOptions): Promise<Answer>;
  notify(message: RpcNotification | Readonly<Record<string, unknown>>, options: SendOptions): Promise<void>;
  /** False: nothing can be sent over it any more. */
  isOpen(): boolean;
  close(): void;
}

/** Whether a message is the answer to a request; servers of some libraries turn a number into a text. */
export const answers = (id: RpcId | null, request: RpcRequest): boolean =>
  id !== null && String(id) === String(request.id);
