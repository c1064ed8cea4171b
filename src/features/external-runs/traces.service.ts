import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { BinaryWriter } from '@bufbuild/protobuf/wire';
import { AcpError } from '../../contract/errors.ts';
import { type FileReply, ok } from '../../contract/operation.ts';
import type { Attribution } from '../../core/caller/attribution.ts';
import type { RunAuthorization } from '../../core/caller/run-authorization.ts';
import type { CallContext, Handlers } from '../../core/context.ts';
import { createTurns } from '../../core/event-loop-turns.ts';
import type { SessionAccess } from '../sessions/index.ts';
import { conventionalAttributes, isPlaceholder } from './conventional-spans.rules.ts';
import { runNameOf } from './external-runs.rules.ts';
import { isLocalRoot, type SpanOwner } from './external-spans.store.ts';
import { type ExternalSpans, maxSpansPerTrace, type RefusedSpans } from './external-spans.ts';
import type { ExternalTelemetry } from './external-telemetry.ts';
import { agentNameOf, keptAttributes, type RecordedContent } from './genai-spans.rules.ts';
import { maxSpansPerRequest, OtlpCount, otlpLimits } from './otlp-count.ts';
import { readJsonSpans } from './otlp-json.ts';
import { readProtobufSpans } from './otlp-protobuf.ts';
import { type RawSpan, type ReceivedSpan, receivedSpan } from './received-spans.ts';
import type { traceOperations } from './traces.operations.ts';

export interface TraceServiceDeps {
  readonly spans: Pick<ExternalSpans, 'receive'>;
  readonly telemetry: Pick<ExternalTelemetry, 'sent'>;
  readonly authorization: Pick<RunAuthorization, 'require'>;
  readonly attribution: Attribution;
  readonly owners: Pick<SessionAccess, 'enabled' | 'callerOwner'>;
  readonly recordingEnabled: boolean;
  readonly content: RecordedContent;
  readonly maxRequestBytes: number;
  readonly now: () => number;
}

type Encoding = 'protobuf' | 'json';

const maxNameLength = 256;

const unzip = promisify(gunzip);

const encodingOf = (contentType: string | undefined): Encoding => {
  const type = contentType?.split(';', 1)[0]?.trim().toLowerCase();
  if (type === 'application/x-protobuf') return 'protobuf';
  if (type === 'application/json') return 'json';
  throw new AcpError('unsupported-media-type', 'The body must be application/x-protobuf or application/json.');
};

/** The limit holds for what the body becomes as well as for what was sent. */
const expanded = async (bytes: Uint8Array, encoding: string, limit: number): Promise<Uint8Array> => {
  if (encoding === '' || encoding === 'identity') return bytes;
  if (encoding !== 'gzip')
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

interface SpansOfBody {
  readonly spans: readonly ReceivedSpan[];
  /** How many were no spans. */
  readonly invalid: number;
  /** How many were not read. */
  readonly surplus: number;
}

interface Refusal {
  readonly rejectedSpans: number;
  readonly errorMessage: string;
}

/** What was not taken, and why; null: all of it was. */
const refusalOf = (counts: readonly (readonly [number, string])[]): Refusal | null => {
  const told = counts.filter(([count]) => count > 0);
  if (told.length === 0) return null;
  return {
    rejectedSpans: told.reduce((sum, [count]) => sum + count, 0),
    errorMessage: `Not taken: ${told.map(([count, why]) => `${count} ${why}`).join('; ')}.`,
  };
};

const once = async function* (bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
};

const protobufReply = (refusal: Refusal | null): FileReply => {
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

/** Agents that the spans may be runs of: those that are named, and what a root without a name is called, also below another process. */
const agentsOf = (spans: readonly ReceivedSpan[]): readonly string[] => [
  ...new Set(spans.filter((span) => isLocalRoot(span) || agentNameOf(span.attributes) !== null).map(runNameOf)),
];

export const traceService = (deps: TraceServiceDeps): Handlers<typeof traceOperations> => {
  const ownerOf = async (context: CallContext, agentName: string): Promise<SpanOwner> => ({
    ...(await deps.attribution.of(context, { agentName, sessionId: null })),
    ownerId: deps.owners.enabled ? deps.owners.callerOwner(context.principal) : null,
  });
  const limits = otlpLimits(deps.maxRequestBytes);

  /** The stored form of a span; null: it is no valid span. */
  const keptOf = (raw: RawSpan): ReceivedSpan | null => {
    const span = receivedSpan(raw, deps.now());
    if (span === null) return null;
    return {
      ...span,
      name: span.name.slice(0, maxNameLength).toWellFormed(),
      attributes: keptAttributes(conventionalAttributes(raw), deps.content),
    };
  };

  /** The spans of a body as far as a request may have them, while others have their turns. */
  const spansIn = async (bytes: Uint8Array, encoding: Encoding): Promise<SpansOfBody> => {
    const count = new OtlpCount(limits);
    const turn = createTurns();
    const spans: ReceivedSpan[] = [];
    let invalid = 0;
    for (const raw of encoding === 'json' ? readJsonSpans(bytes, count) : readProtobufSpans(bytes, count)) {
      if (raw !== null && !isPlaceholder(raw)) {
        const span = keptOf(raw);
        if (span === null) invalid += 1;
        else spans.push(span);
      }
      const turned = turn();
      if (turned !== null) await turned;
    }
    return { spans, invalid, surplus: count.surplus };
  };

  /** Exporters try again where the store is away, and drop the rest. A span that was taken before is known the next time. */
  const kept = async (tenantId: string, owner: SpanOwner, spans: readonly ReceivedSpan[]): Promise<RefusedSpans> => {
    try {
      return await deps.spans.receive(tenantId, owner, spans);
    } catch (error) {
      const isAway = error instanceof AcpError && error.code === 'store-unavailable';
      deps.telemetry.sent(isAway ? 'unavailable' : 'failed', spans.length);
      throw error;
    }
  };

  return {
    async receive(context, { headers }) {
      if (!deps.recordingEnabled)
        throw new AcpError('run-recording-disabled', 'Runs of other programs are records, and recording is off.');
      const encoding = encodingOf(headers['content-type']);
      const sent = await context.readBody(deps.maxRequestBytes);
      const packing = (headers['content-encoding'] ?? '').trim().toLowerCase();
      const bytes = await expanded(sent, packing, deps.maxRequestBytes);
      const { spans, invalid, surplus } = await spansIn(bytes, encoding);
      const agents = agentsOf(spans);
      for (const agentName of agents)
        await deps.authorization.require(context, 'Start', {
          ...{ resource: 'Run', agentName, sessionId: null, userId: null },
        });
      const owner = await ownerOf(context, agents[0] ?? 'external');
      const { late, tooMany } = await kept(context.tenantId, owner, spans);
      deps.telemetry.sent('taken', spans.length - late - tooMany);
      deps.telemetry.sent('invalid', invalid);
      deps.telemetry.sent('late', late);
      deps.telemetry.sent('too_many', surplus + tooMany);
      const refusal = refusalOf([
        [invalid, 'without valid ids or times'],
        [surplus, `beyond the ${maxSpansPerRequest} that one request may have`],
        [late, 'whose run had ended and was stored before they came'],
        [tooMany, `beyond the ${maxSpansPerTrace} that one trace may have`],
      ]);
      if (encoding === 'protobuf') return protobufReply(refusal);
      return ok(
        refusal === null ? {} : { partialSuccess: { ...refusal, rejectedSpans: String(refusal.rejectedSpans) } },
      );
    },
  };
};
