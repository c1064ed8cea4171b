import type { ServerResponse } from 'node:http';
import { type AcpError, toProblem } from '../contract/errors.ts';
import { openAiRetryHeaders, openAiStatus, toOpenAiError } from '../contract/openai-error.ts';
import type { Operation } from '../contract/operation.ts';
import type { OperationEntry } from '../core/dispatch.ts';
import { encodeOtlpStatus, isProtobuf, otlpStatusOf } from './otlp-status.ts';

interface Request {
  readonly path: string;
  readonly requestId: string;
  readonly raw: Pick<ServerResponse, 'req'>;
}

/** An error as a response: status, header fields of its kind, and a body, which is bytes or becomes JSON. */
export type ErrorEnvelope = (
  error: AcpError,
  request: Request,
) => { readonly status: number; readonly headers: Record<string, string>; readonly body: unknown };

/** Problem details (RFC 9457). */
export const problemEnvelope: ErrorEnvelope = (error, { path, requestId }) => ({
  status: error.status,
  headers: { 'content-type': 'application/problem+json' },
  body: toProblem(error, path, requestId),
});

const openAiEnvelope: ErrorEnvelope = (error) => ({
  status: openAiStatus(error.code),
  headers: { 'content-type': 'application/json', ...openAiRetryHeaders(error) },
  body: { error: toOpenAiError(error) },
});

/** As the exporters of OpenTelemetry expect it: a `google.rpc.Status` in the encoding of the request. */
const otlpEnvelope: ErrorEnvelope = (error, { raw }) => {
  const { status } = error;
  const body = otlpStatusOf(error);
  return isProtobuf(raw.req.headers['content-type'])
    ? { status, headers: { 'content-type': 'application/x-protobuf' }, body: encodeOtlpStatus(body) }
    : { status, headers: { 'content-type': 'application/json' }, body };
};

const envelopes: Readonly<Record<NonNullable<Operation['envelope']>, ErrorEnvelope>> = {
  OpenAi: openAiEnvelope,
  Otlp: otlpEnvelope,
};

/** How errors are told at a path, whether or not it has a route; undefined: as problem details. */
export type EnvelopeOf = (path: string) => ErrorEnvelope | undefined;

/** The operations of the OpenAI API have everything below their first segment, but for what is another's. */
export const envelopesOf = (entries: readonly OperationEntry[], prefix: string): EnvelopeOf => {
  const roots = new Map(
    entries.flatMap(({ operation: { path, envelope } }) =>
      envelope !== 'OpenAi' ? [] : [[`${prefix}/${path.split('/')[1]}/`, envelopes[envelope]] as const],
    ),
  );
  const exact = new Map(
    entries.flatMap(({ operation: { path, envelope } }) =>
      envelope === 'Otlp' ? [[prefix + path, envelopes[envelope]] as const] : [],
    ),
  );
  return (path) => {
    const own = exact.get(path);
    if (own !== undefined) return own;
    for (const [root, envelope] of roots) if (`${path}/`.startsWith(root)) return envelope;
    return undefined;
  };
};
