import type { Frame, Operation, UploadedFile } from '../contract/operation.ts';

/** A call as every transport takes it; path and query values may be numbers or booleans. */
export interface TransportCall {
  /** `feature.verb` */
  readonly id: string;
  readonly operation: Operation;
  readonly params: Readonly<Record<string, unknown>>;
  readonly query: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: unknown;
  /** The file of an upload. */
  readonly file?: UploadedFile | undefined;
  /** Ends the call: the promise or the iteration rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** A success. Header names are in lower case; `frames` is set exactly when the answer is an event stream. */
export interface TransportReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly frames?: AsyncIterable<Frame>;
  /** Set exactly when the answer is a file; leaving the iteration ends the download. */
  readonly bytes?: AsyncIterable<Uint8Array>;
}

/** Carries calls to a service. Every failure is an AcpError, `cannot-connect` where no answer arrived. */
export interface Transport {
  /** Address of the service; null: calls are answered in this process. */
  readonly target: string | null;
  call(call: TransportCall): Promise<TransportReply>;
  close(): Promise<void>;
}

/** The operation's path with its parameters filled in. Names are matched by schema, so nothing may be left open. */
export const operationPath = (operation: Operation, params: Readonly<Record<string, unknown>>): string =>
  operation.path.replaceAll(/\{(\w+)\}/g, (_braces, name: string) => encodeURIComponent(String(params[name] ?? '')));

/** Drops what is undefined or null and writes the rest as text, as a URL or a header carries it. */
export const textEntries = (values: Readonly<Record<string, unknown>>): [string, string][] =>
  Object.entries(values)
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([name, value]) => [name, String(value)]);
