import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import type { S3Client } from '@aws-sdk/client-s3';
import { AcpError } from '../../../contract/errors.ts';
import type { StoreFailure } from '../../dialect.ts';
import type { ConditionWords } from '../../store-condition.ts';
import { type MarkedSpace, markerName } from './marked-space.ts';
import type { S3Settings } from './s3-settings.ts';
import { createUploads } from './s3-upload.ts';
import type { ByteRange } from './space.ts';
import { createSpool } from './spool.ts';

// A server that does not answer is told from one that is slow: bytes may take their time, as long as some come.
const connectionTimeoutMs = 3000;
const silenceMs = 30_000;
const maxAttempts = 3;

const words: ConditionWords = {
  full: 'The bucket of the attachments is full: none is stored until there is room',
  'read-only': 'The bucket of the attachments refuses what is written: look at its policy and at the credentials',
  corrupt: 'The bucket of the attachments is damaged',
  unavailable: 'The bucket of the attachments cannot be reached',
  works: 'The bucket of the attachments takes what is written again',
  moved: 'The bucket of the attachments is not the one of this store: nothing is written there until it is',
  returned: 'The bucket of the attachments is that of this store again',
  refusal: 'The bucket of the attachments is another one; none is stored or removed until it is back.',
};

const refused: ReadonlySet<string> = new Set([
  'AccessDenied',
  'AllAccessDisabled',
  'ExpiredToken',
  'Forbidden',
  'InvalidAccessKeyId',
  'InvalidToken',
  'SignatureDoesNotMatch',
]);
const full: ReadonlySet<string> = new Set(['QuotaExceeded', 'XMinioStorageFull', 'InsufficientStorage']);

/** The code of an answer (`Code` of the error document), or of a call that had none. */
const codeOf = (error: unknown): string => {
  if (!(error instanceof Error)) return '';
  const { Code } = error as { readonly Code?: unknown };
  return typeof Code === 'string' ? Code : error.name;
};
const statusOf = (error: unknown): number =>
  (error as { readonly $metadata?: { readonly httpStatusCode?: number } } | null)?.$metadata?.httpStatusCode ?? 0;

const isMissing = (error: unknown): boolean =>
  ['NoSuchKey', 'NotFound'].includes(codeOf(error)) || (statusOf(error) === 404 && codeOf(error) !== 'NoSuchBucket');

const classifyS3 = (error: unknown): StoreFailure => {
  const cause = error instanceof AcpError ? error.cause : error;
  if (!(cause instanceof Error)) return null;
  if (full.has(codeOf(cause)) || statusOf(cause) === 507) return 'full';
  return refused.has(codeOf(cause)) || [401, 403].includes(statusOf(cause)) ? 'read-only' : 'unavailable';
};

/** Errors of the client become `store-unavailable`; their words may name the bucket, and stay in the cause. */
const reaching = async <T>(work: () => Promise<T>): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    if (error instanceof AcpError) throw error;
    throw new AcpError('store-unavailable', 'The contents of attachments cannot be reached now.', { cause: error });
  }
};

const openClient = async ({ region, endpoint, credentials }: S3Settings) => {
  const s3 = await import('@aws-sdk/client-s3');
  const client: S3Client = new s3.S3Client({
    region,
    // Names of buckets as hosts need a wildcard name in the DNS, which few servers but Amazon's have.
    ...(endpoint === null ? {} : { endpoint, forcePathStyle: true }),
    ...(credentials === null ? {} : { credentials: { ...credentials } }),
    // Checksums beyond what the protocol asks for are refused by some of the servers that speak it.
    ...(endpoint === null
      ? {}
      : { requestChecksumCalculation: 'WHEN_REQUIRED', responseChecksumValidation: 'WHEN_REQUIRED' }),
    maxAttempts,
    requestHandler: {
      connectionTimeout: connectionTimeoutMs,
      socketTimeout: silenceMs,
      httpAgent: { keepAlive: true, maxSockets: 50 },
      httpsAgent: { keepAlive: true, maxSockets: 50 },
    },
  });
  return { s3, client };
};

/** What a stream of the client throws on its way is a failure of the place, too. */
const bytesOf = async function* (body: Readable): AsyncGenerator<Uint8Array, void> {
  try {
    yield* body;
  } catch (error) {
    throw new AcpError('store-unavailable', 'The contents of attachments cannot be reached now.', { cause: error });
  }
};

/** Contents as objects `<prefix><id>` of a bucket, by the official client, which is loaded here and nowhere else. */
export const s3Space = async (settings: S3Settings): Promise<MarkedSpace> => {
  const { s3, client } = await openClient(settings);
  const { bucket: Bucket, prefix } = settings;
  const at = (id: string) => ({ Bucket, Key: `${prefix}${id}` });
  const uploads = createUploads(s3, client);

  const sizeAt = async (id: string): Promise<number | null> => {
    try {
      return (await client.send(new s3.HeadObjectCommand(at(id)))).ContentLength ?? null;
    } catch (error) {
      if (isMissing(error)) return null;
      throw error;
    }
  };
  const get = async (id: string, range?: ByteRange) => {
    try {
      const Range = range === undefined ? {} : { Range: `bytes=${range.offset}-${range.offset + range.length - 1}` };
      return await client.send(new s3.GetObjectCommand({ ...at(id), ...Range }));
    } catch (error) {
      if (isMissing(error)) return null;
      throw error;
    }
  };
  const removeObject = (id: string) => client.send(new s3.DeleteObjectCommand(at(id)));
  const put = (id: string, Body: Uint8Array) => client.send(new s3.PutObjectCommand({ ...at(id), Body }));
  return {
    keptIn: 'S3',
    location: `s3://${Bucket}/${prefix}`,
    words,
    assertWritable: () => undefined,
    async draft(id) {
      const spool = await reaching(createSpool);
      return { ...spool, finish: () => reaching(() => uploads.upload(at(id), spool)), close: spool.discard };
    },
    open: (id, range) =>
      reaching(async () => {
        const answer = await get(id, range);
        if (answer === null) return null;
        const { Body, ContentLength = 0, ContentRange } = answer;
        if (!(Body instanceof Readable)) throw new Error('The client gave no stream.');
        const whole = Number(ContentRange?.split('/')[1] ?? ContentLength);
        // Nobody reads what is disposed of, and an error of it is nobody's.
        const dispose = async (): Promise<void> => void Body.on('error', () => undefined).destroy();
        return { sizeBytes: whole, bytes: bytesOf(Body), dispose };
      }),
    has: (id, sizeBytes) => reaching(async () => (await sizeAt(id)) === sizeBytes),
    remove: (id) =>
      reaching(async () => {
        await uploads.abortUnfinished(at(id));
        await removeObject(id);
      }),
    marker: () =>
      reaching(async () => {
        const answer = await get(markerName);
        return answer === null ? null : ((await answer.Body?.transformToString())?.trim() ?? null);
      }),
    mark: (text) => reaching(async () => void (await put(markerName, Buffer.from(`${text}\n`)))),
    probeWrite: () =>
      reaching(async () => {
        const id = `${markerName}-probe-${randomUUID()}`;
        await put(id, Buffer.alloc(16));
        await removeObject(id);
      }),
    classify: classifyS3,
    async *ids() {
      let ContinuationToken: string | undefined;
      do {
        const page = await reaching(() =>
          client.send(
            new s3.ListObjectsV2Command({
              Bucket,
              Prefix: prefix,
              ...(ContinuationToken === undefined ? {} : { ContinuationToken }),
            }),
          ),
        );
        for (const { Key = '' } of page.Contents ?? []) {
          const id = Key.slice(prefix.length);
          if (!id.startsWith(markerName)) yield id;
        }
        ContinuationToken = page.NextContinuationToken;
      } while (ContinuationToken !== undefined);
    },
    close: () => client.destroy(),
  };
};
