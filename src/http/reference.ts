import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { AcpError } from '../contract/errors.ts';
import { readAsset } from '../core/files/assets.ts';
import { accepts } from '../core/json-rpc-message.ts';
import { type HeaderFields, sendBytes, sendEmpty } from './answer.ts';
import { HttpCaller } from './http-call.ts';
import { buildOpenApi } from './openapi.ts';
import { exchangeOf, type RouteOptions, refuse, refuseUnknown } from './routes.ts';

interface ReferenceOptions extends RouteOptions {
  readonly version: string;
  readonly title: string;
}

interface PageFile {
  /** Path below the prefix. */
  readonly path: string;
  readonly asset: string;
  readonly type: string;
}

const documentPath = '/openapi.json';
/** The page is a shell: what it shows it fetches from the document's route, with the reader's own credential. */
const pageFiles: readonly PageFile[] = [
  { path: '/docs', asset: 'docs/page.html', type: 'text/html; charset=utf-8' },
  { path: '/docs/page.css', asset: 'docs/page.css', type: 'text/css; charset=utf-8' },
  { path: '/docs/page.js', asset: 'docs/page.js', type: 'text/javascript; charset=utf-8' },
  { path: '/docs/renderer.css', asset: 'docs-renderer.css', type: 'text/css; charset=utf-8' },
  { path: '/docs/renderer.js', asset: 'docs-renderer.js', type: 'text/javascript; charset=utf-8' },
];

export const referencePaths = (prefix: string): string[] =>
  [documentPath, ...pageFiles.map(({ path }) => path)].map((path) => prefix + path);

/** The page reaches this service and nothing else: no inline script or style, no other host, no frame around it. */
const pageFields: HeaderFields = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  // Asked for again at each visit: a new version of the service must not meet an old page.
  'cache-control': 'no-cache',
};

const isCredentialProblem = (error: unknown): boolean =>
  error instanceof AcpError && (error.code === 'unauthenticated' || error.code === 'ambiguous-credentials');

/** A browser names HTML; programs that take anything do not, and get the problem of an unknown path. */
const isBrowser = (accept: string | undefined): boolean =>
  accept !== undefined && /text\/html/i.test(accept) && accepts(accept, 'text/html');

/** Sends the browser of a person from the root, and from the mount prefix, to the page. */
const addRootRoutes = (app: FastifyInstance, options: ReferenceOptions): void => {
  const { prefix, log } = options;
  for (const path of new Set(['/', prefix === '' ? '/' : prefix]))
    app.get(path, (request, reply) => {
      reply.hijack();
      const exchange = exchangeOf(request, reply, options);
      const fields = { location: `${prefix}/docs`, 'cache-control': 'no-cache', vary: 'Accept' };
      if (isBrowser(request.headers.accept)) sendEmpty(exchange, 302, fields);
      else refuseUnknown(request, exchange, log);
    });
};

/** `GET /openapi.json` for readers, and the page `/docs` that shows it, which holds no data of its own. */
export const addReferenceRoutes = (app: FastifyInstance, options: ReferenceOptions): void => {
  const { dispatch, prefix, version, title } = options;
  let document: Buffer | undefined;
  const files = new Map<string, Buffer>();

  const sendDocument = async (asking: HttpCaller): Promise<void> => {
    await dispatch.admit(asking, { role: 'Reader', scope: null }, 'The description');
    document ??= Buffer.from(JSON.stringify(buildOpenApi(options.entries, { version, prefix, title })));
    sendBytes(asking.exchange, 200, { 'content-type': 'application/json', 'cache-control': 'no-cache' }, document);
  };

  const sendFile = async ({ asset, type }: PageFile, asking: HttpCaller): Promise<void> => {
    // The rules about remote callers and origins hold for the page too; a credential is not asked for.
    try {
      await asking.authenticate();
    } catch (error) {
      if (!isCredentialProblem(error)) throw error;
    }
    const bytes = files.getOrInsertComputed(asset, readAsset);
    sendBytes(asking.exchange, 200, { 'content-type': type, ...pageFields }, bytes);
  };

  const add = (path: string, send: (asking: HttpCaller) => Promise<void>): void => {
    app.get(prefix + path, async (request: FastifyRequest, reply: FastifyReply) => {
      reply.hijack();
      const asking = new HttpCaller(options, request.raw, exchangeOf(request, reply, options));
      await send(asking).catch((error: unknown) => refuse(asking, request, error, options));
    });
  };

  add(documentPath, sendDocument);
  addRootRoutes(app, options);
  for (const file of pageFiles) add(file.path, (asking) => sendFile(file, asking));
};
