import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import type { S3Settings } from '../../src/db/content/spaces/s3-settings.ts';
import { signatureFault } from './s3-signature.ts';

/** What an operation is answered with instead; null: it goes its way. */
export type S3Fault = (call: {
  readonly method: string;
  readonly key: string;
  readonly query: URLSearchParams;
}) => { readonly status: number; readonly code: string } | 'cut' | 'never' | null;

export interface S3Server {
  readonly settings: S3Settings;
  /** Objects of the bucket, by key. */
  readonly objects: Map<string, Buffer>;
  /** Keys of uploads that have begun and neither ended nor been aborted. */
  unfinished(): readonly string[];
  /** Until it is called with null. */
  fail(fault: S3Fault | null): void;
  /** Methods with the names of their queries, in the order in which they came. */
  readonly calls: string[];
  stop(): Promise<void>;
}

const keys = { 'test-key': 'test/secret+with=signs' };
const region = 'eu-test-1';
const minPartBytes = 5_242_880;
// So few that a list has several pages.
const pageSize = 3;

const escaped = (text: string): string => text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
const etagOf = (bytes: Buffer): string => `"${createHash('md5').update(bytes).digest('hex')}"`;

/**
 * A bucket as the public description of the protocol has it: objects, ranges, lists, uploads in parts, signatures and
 * hashes of bodies. What it does not have is answered with `NotImplemented`.
 */
export const startS3Server = async (t: Pick<TestContext, 'after'>, prefix = 'acp/'): Promise<S3Server> => {
  const objects = new Map<string, Buffer>();
  const uploads = new Map<string, { readonly key: string; readonly parts: Map<number, Buffer> }>();
  const calls: string[] = [];
  let fault: S3Fault | null = null;

  const refuse = (response: ServerResponse, status: number, code: string, head = false): void => {
    response.writeHead(status, { 'content-type': 'application/xml' });
    response.end(
      head ? undefined : `<?xml version="1.0"?><Error><Code>${code}</Code><Message>${code}</Message></Error>`,
    );
  };
  const xml = (response: ServerResponse, body: string): void => {
    response.writeHead(200, { 'content-type': 'application/xml' });
    response.end(`<?xml version="1.0"?>${body}`);
  };
  const read = (request: IncomingMessage, response: ServerResponse, key: string): void => {
    const bytes = objects.get(key);
    if (bytes === undefined) return void refuse(response, 404, 'NoSuchKey', request.method === 'HEAD');
    const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? [];
    if (from === undefined || to === undefined) {
      response.writeHead(200, { 'content-length': bytes.length, etag: etagOf(bytes) });
      return void response.end(request.method === 'HEAD' ? undefined : bytes);
    }
    if (Number(from) >= bytes.length) return void refuse(response, 416, 'InvalidRange');
    const last = Math.min(Number(to), bytes.length - 1);
    const part = bytes.subarray(Number(from), last + 1);
    response.writeHead(206, {
      'content-length': part.length,
      'content-range': `bytes ${from}-${last}/${bytes.length}`,
    });
    return void response.end(part);
  };
  const list = (response: ServerResponse, query: URLSearchParams): void => {
    const wanted = [...objects.keys()].filter((key) => key.startsWith(query.get('prefix') ?? '')).sort();
    const after = query.get('continuation-token') ?? '';
    const rest = wanted.filter((key) => key > after);
    const page = rest.slice(0, pageSize);
    const more = rest.length > page.length;
    const contents = page.map((key) => `<Contents><Key>${escaped(key)}</Key></Contents>`).join('');
    const token = more ? `<NextContinuationToken>${escaped(page.at(-1) ?? '')}</NextContinuationToken>` : '';
    xml(response, `<ListBucketResult><IsTruncated>${more}</IsTruncated>${token}${contents}</ListBucketResult>`);
  };
  const complete = (response: ServerResponse, id: string, body: string): void => {
    const upload = uploads.get(id);
    if (upload === undefined) return void refuse(response, 404, 'NoSuchUpload');
    const named = [...body.matchAll(/<Part>(.*?)<\/Part>/gs)].map(([, part = '']) => ({
      number: Number(/<PartNumber>(\d+)</.exec(part)?.[1]),
      etag: (/<ETag>(.*?)</.exec(part)?.[1] ?? '').replaceAll('&quot;', '"'),
    }));
    const parts: Buffer[] = [];
    for (const [index, { number, etag }] of named.entries()) {
      const part = upload.parts.get(number);
      if (part === undefined || etagOf(part) !== etag) return void refuse(response, 400, 'InvalidPart');
      if (index > 0 && number <= (named[index - 1]?.number ?? 0)) return void refuse(response, 400, 'InvalidPartOrder');
      if (index < named.length - 1 && part.length < minPartBytes) return void refuse(response, 400, 'EntityTooSmall');
      parts.push(part);
    }
    objects.set(upload.key, Buffer.concat(parts));
    uploads.delete(id);
    return void xml(
      response,
      `<CompleteMultipartUploadResult><Key>${escaped(upload.key)}</Key></CompleteMultipartUploadResult>`,
    );
  };
  const write = (response: ServerResponse, key: string, query: URLSearchParams, body: Buffer): void => {
    const id = query.get('uploadId');
    if (id === null) objects.set(key, body);
    else {
      const upload = uploads.get(id);
      if (upload === undefined) return void refuse(response, 404, 'NoSuchUpload');
      upload.parts.set(Number(query.get('partNumber')), body);
    }
    response.writeHead(200, { etag: etagOf(body) });
    return void response.end();
  };

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const { method = '', url = '', headers } = request;
    const { pathname, searchParams: query } = new URL(url, 'http://host');
    const [, bucket = '', ...rest] = pathname.split('/').map(decodeURIComponent);
    const key = rest.join('/');
    const names = [...query.keys()].filter((name) => name !== 'x-id').sort();
    calls.push([method, ...names].join(' '));
    const wrong = signatureFault({ method, url, headers }, keys, region);
    if (wrong !== null) return void refuse(response, 403, wrong, method === 'HEAD');
    const hash = String(headers['x-amz-content-sha256']);
    if (hash !== 'UNSIGNED-PAYLOAD' && hash !== createHash('sha256').update(body).digest('hex'))
      return void refuse(response, 400, 'XAmzContentSHA256Mismatch');
    const failure = fault?.({ method, key, query }) ?? null;
    if (failure === 'never') return;
    if (failure === 'cut') return void request.socket.destroy();
    if (failure !== null) return void refuse(response, failure.status, failure.code, method === 'HEAD');
    if (bucket !== 'bucket') return void refuse(response, 404, 'NoSuchBucket', method === 'HEAD');
    if (method === 'GET' && query.has('uploads')) {
      const begun = [...uploads].filter(([, upload]) => upload.key.startsWith(query.get('prefix') ?? ''));
      const entries = begun.map(
        ([id, upload]) => `<Upload><Key>${escaped(upload.key)}</Key><UploadId>${id}</UploadId></Upload>`,
      );
      return void xml(response, `<ListMultipartUploadsResult>${entries.join('')}</ListMultipartUploadsResult>`);
    }
    if (method === 'GET' && key === '') return void list(response, query);
    if (method === 'GET' || method === 'HEAD') return void read(request, response, key);
    if (method === 'PUT') return void write(response, key, query, body);
    if (method === 'DELETE') {
      const id = query.get('uploadId');
      if (id !== null && !uploads.delete(id)) return void refuse(response, 404, 'NoSuchUpload');
      if (id === null) objects.delete(key);
      response.writeHead(204);
      return void response.end();
    }
    if (method === 'POST' && query.has('uploads')) {
      const id = randomUUID();
      uploads.set(id, { key, parts: new Map() });
      return void xml(
        response,
        `<InitiateMultipartUploadResult><Key>${escaped(key)}</Key><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`,
      );
    }
    const id = query.get('uploadId');
    if (method === 'POST' && id !== null) return void complete(response, id, body.toString());
    return void refuse(response, 501, 'NotImplemented');
  };

  const server = createServer((request, response) => {
    // A client that ended its process is no failure of the server.
    answer(request, response).catch(() => request.socket.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const stop = async (): Promise<void> => {
    if (!server.listening) return;
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  t.after(stop);
  const [[accessKeyId, secretAccessKey] = ['', '']] = Object.entries(keys);
  return {
    settings: {
      ...{ bucket: 'bucket', region, endpoint: `http://127.0.0.1:${port}`, prefix },
      credentials: { accessKeyId, secretAccessKey },
    },
    objects,
    unfinished: () => [...uploads.values()].map(({ key }) => key),
    fail(next) {
      fault = next;
    },
    calls,
    stop,
  };
};
