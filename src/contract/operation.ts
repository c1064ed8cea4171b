import type { Static, TObject, TSchema } from 'typebox';
import type { ApiKeyScope, Role } from './authority.ts';
import type { ErrorCode } from './errors.ts';

/** One operation of the service, as data. Routes, client, CLI, OpenAPI and permission checks come from it. */
export interface Operation {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Path below the mount prefix, parameters in braces. */
  readonly path: string;
  readonly tag: string;
  readonly summary: string;
  /** One or two sentences with what the summary does not say; every operation of the product has them. */
  readonly description?: string;
  /** Both null: no credential is asked for, or with `anyCaller` any that is good. */
  readonly role: Role | null;
  /** An API key needs each of several. */
  readonly scope: ApiKeyScope | readonly ApiKeyScope[] | null;
  /** Any authenticated caller may ask, even one without a role. Only where role and scope are null. */
  readonly anyCaller?: true;
  /**
   * A signature over the body says who calls, in place of a credential, which nobody reads. The handler checks it, and
   * reads the body itself: the bytes that were sent, of whatever type. Only where role and scope are null.
   */
  readonly signed?: true;
  /**
   * The body speaks a protocol of its own, JSON-RPC or OTLP: once the caller may call, the handler reads it and answers what is wrong
   * with it in the words of that protocol.
   */
  readonly ownProtocol?: true;
  /** Path of the metadata (RFC 9728) that a caller without a credential is pointed to; left out: to none. */
  readonly resourceMetadata?: string;
  /** Bodies that take more authority than that. */
  readonly raised?: readonly RaisedAuthority[];
  readonly params?: TObject;
  /** The last parameter ends the path and may hold slashes: clients of another API send them as they are. */
  readonly takesSlashes?: true;
  readonly query?: TObject;
  readonly headers?: TObject;
  /** A repeat under the same `Idempotency-Key`, one of the headers, gets the answer of the first request. */
  readonly idempotency?: true;
  readonly body?: TSchema;
  /** Success answers by status; null: no body. The first one is the usual one. */
  readonly responses: Readonly<Record<number, TSchema | null>>;
  /** What the operation itself may answer beyond the errors that every operation shares. */
  readonly errors: readonly ErrorCode[];
  /** Members of the event frames when the answer may be a server-sent event stream. */
  readonly stream?: TSchema;
  /** The body is `multipart/form-data` with one file part, read while it arrives. */
  readonly upload?: UploadShape;
  /** What the bytes are when the answer is a file and no JSON; its media type is the file's own. */
  readonly download?: string;
  /** The answer may be long: it can be sent in parts, while the rest of it is still read. */
  readonly inParts?: true;
  /** Answers are texts, and pages of HTML for the browser of a person. */
  readonly page?: true;
  /** Most calls from one address in a minute, where the transport knows addresses; left out: those of the service as a whole. */
  readonly callsPerMinute?: number;
  /** A `POST` that changes nothing, as every `GET` does: it looks, tries or foresees. */
  readonly changesNothing?: true;
  /** Largest body in bytes; default 1 MiB. */
  readonly maxBodyBytes?: number;
  /** The audit entry that a call writes together with its change; left out: it changes nothing that is audited. */
  readonly audit?: OperationAudit;
  readonly cli?: CliShape;
  /**
   * Errors are told as clients of another API know them; left out: as problem details. With `OpenAi` all below its first path
   * segment are, with `Otlp` those at its own path.
   */
  readonly envelope?: 'OpenAi' | 'Otlp';
  /** Optional properties of the body that are null count as absent, unless their schemas take null: many programs send them so. */
  readonly nullIsAbsent?: true;
}

export interface OperationAudit {
  /** Such as `agent.update`. */
  readonly action: string;
  /** What it is about: the entry's entity is `<entity>:<id>`. */
  readonly entity: string;
  /** What becomes of a change whose entry cannot be written: `fail-closed` refuses it, `noted` lets it stand and logs the failure. */
  readonly mode: 'fail-closed' | 'noted';
}

export interface RaisedAuthority {
  /** Path from the body to the member that decides; a list on it stands for any of its elements. */
  readonly member: readonly string[];
  readonly value: string | boolean;
  readonly role: Role;
  readonly scope?: ApiKeyScope;
}

export interface UploadShape {
  /** Name of the file part. */
  readonly part: string;
  readonly description: string;
}

/** How the generated command differs from `acp <feature> <verb>`. */
export interface CliShape {
  /** Words of the command, such as `agents delete`. */
  readonly command?: string;
  /** Columns of the human table, as member paths of a row. */
  readonly columns?: readonly string[];
  /** Query values that the command sends where no option says otherwise. */
  readonly query?: Readonly<Record<string, unknown>>;
  /** What is said after success where the answer has no body: past tense, with path parameters in braces. */
  readonly done?: string;
  /** The command ends with exit code 1 where a row of the answer has this value: something that it looked at is not in order. */
  readonly failure?: { readonly member: string; readonly value: string };
  /** True where a hand-written command covers the operation. */
  readonly handWritten?: boolean;
}

export type OperationTable = Readonly<Record<string, Operation>>;
/** feature → verb → operation. The operation id is `feature.verb`. */
export type ApiTable = Readonly<Record<string, OperationTable>>;

/** True where the service is afterwards as it was before. */
export const isRead = ({ method, changesNothing }: Pick<Operation, 'method' | 'changesNothing'>): boolean =>
  method === 'GET' || changesNothing === true;

/** True where no credential is asked for, so that nobody is refused for who they are. */
export const isForEverybody = ({ role, anyCaller }: Pick<Operation, 'role' | 'anyCaller'>): boolean =>
  role === null && anyCaller !== true;

/** Keeps the literal types of a feature's operations. */
export const defineOperations = <const T extends Record<string, Operation>>(operations: T): T => operations;

/**
 * A file on its way. `bytes` can be iterated once: it ends only when the whole request has arrived and was valid, and
 * throws otherwise. Leaving the iteration stops the reading.
 */
export interface UploadedFile {
  /** As the sender named it; null without a name. */
  readonly name: string | null;
  readonly bytes: AsyncIterable<Uint8Array>;
}

type StaticOr<T, Otherwise> = T extends TSchema ? Static<T> : Otherwise;

/** What a handler receives, checked and with numbers and booleans of path and query already parsed. */
export type OperationInput<O extends Operation> = {
  readonly params: StaticOr<O['params'], Record<never, never>>;
  readonly query: StaticOr<O['query'], Record<never, never>>;
  readonly headers: StaticOr<O['headers'], Record<never, never>>;
  readonly body: StaticOr<O['body'], undefined>;
} & (O['upload'] extends UploadShape ? { readonly file: UploadedFile } : unknown);

type Replies<R> = {
  [S in keyof R & number]: {
    readonly status: S;
    readonly headers?: Readonly<Record<string, string>>;
  } & (R[S] extends TSchema ? { readonly body: Static<R[S]> } : { readonly body?: undefined });
}[keyof R & number];

/** An event of a server-sent stream. `id` is the sequence in the run's log; the `error` frame has none. */
export interface Frame {
  readonly id?: number;
  /** Empty: the frame has data alone. */
  readonly event: string;
  /** On one line; JSON, apart from the words that end a stream of another API. */
  readonly data: string;
}

/** Frames arrive in order; iteration ends after the terminal frame. Breaking off releases the subscription. */
export interface StreamReply {
  readonly status: 200;
  readonly stream: FrameSource;
  /** `data`: frames are told without the names of their events. Left out: with them. */
  readonly framing?: 'data';
  readonly headers?: Readonly<Record<string, string>>;
}

/** An answer like any other, as the text of its JSON in parts. They can be iterated once, and nothing is open before. */
export interface PartsReply {
  readonly status: 200;
  readonly parts: AsyncIterable<string>;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The bytes of a file. Whoever gets it reads it, or calls `dispose`. */
export interface FileReply {
  readonly status: 200;
  readonly file: FileSource;
  readonly headers: Readonly<Record<string, string>>;
}

export interface FileSource {
  /** Null: the size is known only after the last byte. */
  readonly sizeBytes: number | null;
  /** Can be iterated once; leaving the iteration closes the source. */
  readonly bytes: AsyncIterable<Uint8Array>;
  /** Closes a source that nobody has read. */
  dispose(): Promise<void>;
}

/**
 * A pushed source of frames: `subscribe` calls `onFrames` with batches, then `onEnd` once.
 * It returns the function that ends the subscription. Pushing saves a promise per frame on the hot path.
 */
export interface FrameSource {
  /**
   * `drained` tells a source that replays stored frames when to go on: undefined while the reader keeps up, else a
   * promise to await before the next page. Live frames never wait for it; a reader too far behind is cut off.
   */
  subscribe(
    onFrames: (frames: readonly Frame[]) => void,
    onEnd: () => void,
    drained?: () => Promise<void> | undefined,
  ): () => void;
}

export type OperationReply<O extends Operation> =
  | Replies<O['responses']>
  | (O['stream'] extends TSchema ? StreamReply : never)
  | (O['inParts'] extends true ? PartsReply : never)
  | (O['download'] extends string ? FileReply : never);

/** The body that was sent in parts. */
export const wholeBody = async (parts: AsyncIterable<string>): Promise<unknown> => {
  let text = '';
  for await (const part of parts) text += part;
  return JSON.parse(text);
};

export const ok = <T>(body: T, headers?: Readonly<Record<string, string>>) =>
  headers === undefined ? ({ status: 200, body } as const) : ({ status: 200, body, headers } as const);
export const noContent = () => ({ status: 204 }) as const;
