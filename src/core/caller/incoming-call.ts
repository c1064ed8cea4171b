import type { Operation, UploadedFile } from '../../contract/operation.ts';
import type { CallContext, Caller } from '../context.ts';

/** What may be asked of a caller before he is served: that of an operation, or of a page beside them. */
export type RequiredAuthority = Pick<Operation, 'role' | 'scope' | 'anyCaller'>;

/** Somebody who asks, as the transport knows him. */
export interface AskingCaller extends Pick<CallContext, 'trace'> {
  authenticate(required: RequiredAuthority): Caller | Promise<Caller>;
  /**
   * The transport's limit on requests, asked twice: before the caller is known (null), to count by where the call comes
   * from, and once his authority is known, to count by who he is. Throws `rate-limited`; a promise waits for a turn.
   * Left out: calls of this transport are not limited.
   */
  limit?(caller: Caller | null): Promise<void> | undefined;
}

/** What a caller has sent. Path and query values may still be text. */
export interface ReceivedInput extends Pick<CallContext, 'receivedAt'> {
  readonly params: Readonly<Record<string, unknown>>;
  readonly query: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, unknown>>;
  /** Parses the body; asked for where the operation has one, once the other parts are valid. */
  body(): unknown;
}

/** A call as its transport hands it over: what the caller is still sending is read only once he may make the call. */
export interface IncomingCall extends AskingCaller, Pick<CallContext, 'requestId' | 'signal' | 'method' | 'path'> {
  /** The bytes of the body; null for a file, which is read while it arrives. */
  readBody(): Uint8Array | null | Promise<Uint8Array>;
  /** All that was sent, once the body is read. */
  received(rawBody: Uint8Array | null): ReceivedInput;
  /** The file of an upload; asked for once the rest is valid. */
  openFile?(): Promise<UploadedFile>;
}
