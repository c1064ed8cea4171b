import { type AcpError, toProblem } from '../contract/errors.ts';
import { openAiRetryHeaders, toOpenAiError } from '../contract/openai-error.ts';
import type { Operation } from '../contract/operation.ts';
import type { OperationEntry } from '../core/dispatch.ts';

interface Request {
  readonly path: string;
  readonly requestId: string;
}

/** An error as an answer: its body and the header fields of its kind. */
export type ErrorEnvelope = (
  error: AcpError,
  request: Request,
) => { readonly headers: Record<string, string>; readonly body: unknown };

/** Problem details (RFC 9457). */
export const problemEnvelope: ErrorEnvelope = (error, { path, requestId }) => ({
  headers: { 'content-type': 'application/problem+json' },
  body: toProblem(error, path, requestId),
});

const openAiEnvelope: ErrorEnvelope = (error) => ({
  headers: { 'content-type': 'application/json', ...openAiRetryHeaders(error) },
  body: { error: toOpenAiError(error) },
});

const envelopes: Readonly<Record<NonNullable<Operation['envelope']>, ErrorEnvelope>> = { OpenAi: openAiEnvelope };

/** How errors are told at a path, whether or not it has a route; undefined: as problem details. */
export type EnvelopeOf = (path: string) => ErrorEnvelope | undefined;

/** The operations of another API have everything below their first segment. */
export const envelopesOf = (entries: readonly OperationEntry[], prefix: string): EnvelopeOf => {
  const roots = new Map(
    entries.flatMap(({ operation: { path, envelope } }) =>
      envelope === undefined ? [] : [[`${prefix}/${path.split('/')[1]}/`, envelopes[envelope]] as const],
    ),
  );
  return (path) => {
    for (const [root, envelope] of roots) if (`${path}/`.startsWith(root)) return envelope;
    return undefined;
  };
};
