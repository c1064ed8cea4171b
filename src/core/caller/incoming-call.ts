import type { Operation, UploadedFile } from '../../contract/operation.ts';
import type { CallContext, Caller } from '../context.ts';

/** What a caller needs: for an operation, or for a page that is none. */
export type RequiredAuthority = Pick<Operation, 'role' | 'scope' | 'anyCaller' | 'signed' | 'callsPerMinute'>;

/** The caller, as the transport knows them. */
export interface AskingCaller extends Pick<CallContext, 'trace'> {
  authenticate(required: RequiredAuthority): Caller | Promise<Caller>;
  /**
   * The transport's limit on requests, asked twice: before the caller is known (null), to count by where the call comes
   * from, and once the caller's authority is known, to count by caller. Throws `rate-limited`; a promise waits for a turn.
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

/** A call as its transport hands it over: what is still on its way is read only once the caller may make the call. */
export interface IncomingCall extends AskingCaller, Pick<CallContext, 'requestId' | 'signal' | 'method' | 'path'> {
  /**
   * The bytes of the body; null for a file, which is read while it arrives. Throws `payload-too-large` for more than so
   * many, or than the operation takes.
   */
  readBody(maxBytes?: number): Uint8Array | null | Promise<Uint8Array>;
  /** All that was sent, once the body is read. `rawBody`: what is parsed, with each of its texts as stores hold it. */
  received(rawBody: Uint8Array | null): ReceivedInput;
  /**
   * The answer stays open as a stream; counted once for a call, until the caller has all of it or goes away. Throws
   * `too-many-streams`. Left out: streams of this transport are not counted.
   */
  openStream?(caller: Caller): void;
  /** The file of an upload; asked for once the rest is valid. */
  openFile?(): Promise<UploadedFile>;
}
