import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { BinaryWriter } from '@bufbuild/protobuf/wire';
import { AcpError } from '../../contract/errors.ts';
import { type FileReply, ok } from '../../contract/operation.ts';
import type { Attribution } from '../../core/caller/attribution.ts';
import type { RunAuthorization } from '../../core/caller/run-authorization.ts';
import type { CallContext, Handlers } from '../../core/context.ts';
import { parseJsonBody } from '../../core/documents/json-body.ts';
import type { SessionAccess } from '../sessions/index.ts';
import type { SpanOwner } from './external-spans.store.ts';
import { type ExternalSpans, maxSpansPerTrace } from './external-spans.ts';
import { agentNameOf } from './genai-spans.rules.ts';
import { type ReceivedSpan, type ReceivedSpans, readJsonSpans, readProtobufSpans } from './otlp-spans.ts';
import type { traceOperations } from './traces.operations.ts';

export interface TraceServiceDeps {
  readonly spans: Pick<ExternalSpans, 'receive'>;
  readonly authorization: Pick<RunAuthorization, 'require'>;
  readonly attribution: Attribution;
  readonly owners: Pick<SessionAccess, 'enabled' | 'callerOwner'>;
  readonly recordingEnabled: boolean;
  readonly maxRequestBytes: number;
}

type Encoding = 'protobuf' | 'json';

const unzip = promisify(gunzip);

const encodingOf = (contentType: string | undefined): Encoding => {
  const type = contentType?.split(';', 1)[0]?.trim().toLowerCase();
  if (type === 'application/x-protobuf') return 'protobuf';
  if (type === 'application/json') return 'json';
  throw new AcpError('unsupported-media-type', 'The body must be application/x-protobuf or application/json.');
};

/** The limit holds for what the body becomes as well as for what was sent. */
const expanded = async (bytes: Uint8Array, encoding: string | undefined, limit: number): Promise<Uint8Array> => {
  if (encoding === undefined || encoding === '' || encoding.toLowerCase() === 'identity') return bytes;
  if (encoding.toLowerCase() !== 'gzip')
    throw new AcpError('unsupported-media-type', 'The body may be compressed with gzip, and in no other way.');
  try {
    return await unzip(bytes, { maxOutputLength: limit });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE')
      throw new AcpError('payload-too-large', `The body is larger than ${limit} bytes once it is unpacked.`);
    throw new AcpError('validation-failed', 'The body is not compressed with gzip, although its header says so.', {
      cause: error,
    });
  }
};

/** What was not taken, and why; null: all of it was. */
const refusalOf = (invalid: number, late: number, tooMany: number) => {
  const reasons = [
    invalid > 0 ? `${invalid} without valid ids or times` : '',
    late > 0 ? `${late} whose run had ended and was stored before they came` : '',
    tooMany > 0 ? `${tooMany} beyond the ${maxSpansPerTrace} that a trace may have` : '',
  ].filter((reason) => reason !== '');
  return reasons.length === 0
    ? null
    : { rejectedSpans: invalid + late + tooMany, errorMessage: `Not taken: ${reasons.join('; ')}.` };
};

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

const protobufReply = (refusal: ReturnType<typeof refusalOf>): FileReply => {
  const writer = new BinaryWriter();
  if (refusal !== null) {
    const partial = new BinaryWriter().tag(1, 0).int64(refusal.rejectedSpans);
    writer.tag(1, 2).bytes(partial.tag(2, 2).string(refusal.errorMessage).finish());
  }
  const bytes = writer.finish();
  return {
    status: 200,
    file: { sizeBytes: bytes.byteLength, bytes: once(bytes), dispose: async () => undefined },
    headers: { 'content-type': 'application/x-protobuf' },
  };
};

const namesOf = (spans: readonly ReceivedSpan[]): readonly string[] => [
  ...new Set(spans.flatMap(({ attributes, serviceName }) => agentNameOf(attributes) ?? serviceName ?? [])),
];

export const traceService = (deps: TraceServiceDeps): Handlers<typeof traceOperations> => {
  const ownerOf = async (context: CallContext, agentName: string): Promise<SpanOwner> => ({
    ...(await deps.attribution.of(context, { agentName, sessionId: null })),
    ownerId: deps.owners.enabled ? deps.owners.callerOwner(context.principal) : null,
  });

  return {
    async receive(context, { headers }) {
      if (!deps.recordingEnabled)
        throw new AcpError('run-recording-disabled', 'Runs of other programs are records, and recording is off.');
      const encoding = encodingOf(headers['content-type']);
      const sent = await context.readBody(deps.maxRequestBytes);
      const bytes = await expanded(sent, headers['content-encoding'], deps.maxRequestBytes);
      const read: ReceivedSpans = encoding === 'json' ? readJsonSpans(parseJsonBody(bytes)) : readProtobufSpans(bytes);
      const { spans, invalid } = read;
      const names = namesOf(spans);
      for (const agentName of names)
        await deps.authorization.require(context, 'Start', {
          ...{ resource: 'Run', agentName, sessionId: null, userId: null },
        });
      const { tenantId } = context;
      const owner = await ownerOf(context, names[0] ?? 'external');
      const { late, tooMany } = await deps.spans.receive(tenantId, owner, spans);
      const refusal = refusalOf(invalid, late, tooMany);
      if (encoding === 'protobuf') return protobufReply(refusal);
      return ok(
        refusal === null ? {} : { partialSuccess: { ...refusal, rejectedSpans: String(refusal.rejectedSpans) } },
      );
    },
  };
};
