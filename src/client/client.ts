import type { Static, TSchema } from 'typebox';
import type { ApiTable, Frame, Operation, UploadedFile, UploadShape } from '../contract/operation.ts';
import { operations } from '../operations.ts';
import type { Transport, TransportCall, TransportReply } from './transport.ts';

type Member<O extends Operation, K extends 'params' | 'query' | 'headers' | 'body'> = O[K] extends TSchema
  ? Static<O[K]>
  : never;

type Needed<K extends string, V> = [V] extends [never] ? unknown : { readonly [P in K]: V };
type Possible<K extends string, V> = [V] extends [never] ? unknown : { readonly [P in K]?: V };

/** What an operation takes: path parameters, body and file where it has them, query and headers at will. A signed body is the text that is sent. */
export type ClientInput<O extends Operation> = Needed<'params', Member<O, 'params'>> &
  Possible<'query', Member<O, 'query'>> &
  Possible<'headers', Member<O, 'headers'>> &
  Needed<'body', O['signed'] extends true ? string : Member<O, 'body'>> &
  Needed<'file', O['upload'] extends UploadShape ? UploadedFile : never> & {
    readonly signal?: AbortSignal | undefined;
  };

interface ReplyHead<S extends number> {
  readonly status: S;
  readonly headers: Readonly<Record<string, string>>;
}

type BodyReplies<R> = {
  [S in keyof R & number]: ReplyHead<S> & {
    readonly body: R[S] extends TSchema ? Static<R[S]> : undefined;
    readonly frames?: undefined;
    readonly bytes?: undefined;
  };
}[keyof R & number];

export type FramesReply = ReplyHead<200> & {
  readonly frames: AsyncIterable<Frame>;
  readonly body?: undefined;
  readonly bytes?: undefined;
};

export type BytesReply = ReplyHead<200> & {
  readonly bytes: AsyncIterable<Uint8Array>;
  readonly body?: undefined;
  readonly frames?: undefined;
};

/** A success answer by status; one with `frames` is an event stream, one with `bytes` a file. Errors are thrown as AcpError. */
export type ClientReply<O extends Operation> =
  | BodyReplies<O['responses']>
  | (O['stream'] extends TSchema ? FramesReply : never)
  | (O['download'] extends string ? BytesReply : never);

type Arguments<O extends Operation> =
  Record<never, never> extends ClientInput<O> ? [input?: ClientInput<O>] : [input: ClientInput<O>];

/** `client.<feature>.<verb>(input)` for every operation of a table. */
export type ClientOf<T extends ApiTable> = {
  readonly [F in keyof T]: {
    readonly [V in keyof T[F]]: (...args: Arguments<T[F][V]>) => Promise<ClientReply<T[F][V]>>;
  };
};

export type Client = ClientOf<typeof operations>;

/** An input whose shape is only known from the table, as generated commands have it. */
export type AnyInput = Partial<Omit<TransportCall, 'id' | 'operation'>>;

/** Calls one operation by its id, `feature.verb`, without types. */
export const callOperation = (
  transport: Transport,
  id: string,
  operation: Operation,
  input: AnyInput = {},
): Promise<TransportReply> =>
  transport.call({ params: {}, query: {}, headers: {}, body: undefined, ...input, id, operation });

/** The typed client of the operation table; the same over every transport. */
export const createClient = (transport: Transport): Client => {
  const features = Object.entries(operations as ApiTable).map(([feature, table]) => {
    const verbs = Object.entries(table).map(([verb, operation]) => [
      verb,
      (input?: AnyInput) => callOperation(transport, `${feature}.${verb}`, operation, input),
    ]);
    return [feature, Object.fromEntries(verbs)];
  });
  return Object.fromEntries(features) as Client;
};
