import type { TraceHeaders } from '../../core/telemetry/trace-context.ts';
import type { OutboundHttp } from '../http/outbound.ts';
import type { Channel } from './channel.ts';
import type { McpGeneration } from './wire/protocol.ts';

/** A server as it is to be reached. */
export interface McpTarget {
  /** An address, or the name of a program that is no address. */
  readonly endpoint: string;
  /** A way of its own, as to a program of this machine; absent: requests go to `endpoint`. Throws McpFailure. */
  channel?(): Promise<Channel>;
  /** Ends what the way leads to, once nobody needs it. */
  stop?(): Promise<void>;
  readonly transport: 'StreamableHttp' | 'Sse';
  readonly protocol: 'Auto' | McpGeneration;
  readonly headers: Readonly<Record<string, string>>;
  /** The whole Authorization header; null: none is sent. Asked for each request. Throws McpFailure. */
  authorization(): Promise<string | null>;
  /** The server has refused this one. True: there is another by now, and the request is sent once more. Throws McpFailure. */
  renewed?(refused: string): Promise<boolean>;
  /** The server has refused a request with 403, and says why (`WWW-Authenticate`). */
  forbidden?(challenge: string): void;
}

/** What is known of a server once it was reached. */
export interface McpSession {
  readonly generation: McpGeneration;
  readonly version: string;
  readonly serverName: string | null;
  readonly capabilities: Readonly<Record<string, unknown>>;
}

export interface McpRequestOptions {
  readonly signal?: AbortSignal | undefined;
  /** For connecting and the whole call. */
  readonly timeoutMs: number;
  /** Tool or prompt, URI of a resource: what the request is about. */
  readonly name?: string;
  /** What this client can do for the server meanwhile, in the stateless generation. Default: nothing. */
  readonly capabilities?: Readonly<Record<string, unknown>>;
  /** Further headers of the stateless generation. */
  readonly parameterHeaders?: Readonly<Record<string, string>>;
  /** Of the span that the request is made for. */
  readonly trace?: Partial<TraceHeaders>;
}

/** One server. Everything throws McpFailure only. */
export interface McpClient {
  /** Reaches it, unless that has been done. */
  session(options: Pick<McpRequestOptions, 'signal' | 'timeoutMs'>): Promise<McpSession>;
  request(
    method: string,
    params: Readonly<Record<string, unknown>>,
    options: McpRequestOptions,
  ): Promise<Readonly<Record<string, unknown>>>;
  /** What is asked next begins a session anew, where the server keeps one and this is all that is known of it. */
  renew(): void;
  /** Ends its session, best effort. */
  close(): Promise<void>;
}

export interface McpClientDeps {
  readonly http: Pick<OutboundHttp, 'open' | 'request'>;
  readonly clientInfo: { readonly name: string; readonly version: string };
  readonly connectTimeoutMs: number;
  readonly maxAnswerBytes: number;
}

export interface Connection extends McpSession {
  readonly channel: Channel;
  readonly sessionId: string | null;
}
