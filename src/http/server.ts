import type { IncomingMessage, ServerResponse } from 'node:http';
import { type FastifyError, type FastifyInstance, fastify } from 'fastify';
import { AcpError } from '../contract/errors.ts';
import type { ClientAddress } from '../core/caller/client-address.ts';
import type { Dispatch, OperationEntry } from '../core/dispatch.ts';
import { newId } from '../core/ids.ts';
import type { Logger } from '../core/logger.ts';
import { noTelemetry } from '../core/telemetry/telemetry.ts';
import { type Exchange, sendProblem } from './answer.ts';
import { discardRest } from './body.ts';
import { answerClientError } from './client-errors.ts';
import { createCors } from './cors.ts';
import { type EnvelopeOf, envelopesOf } from './envelopes.ts';
import { addHealthRoutes, type HealthState } from './health.ts';
import type { CallerOptions } from './http-call.ts';
import { addMetricsRoute, type MetricsOptions } from './metrics.ts';
import { type ConnectionLimits, createNodeServer, defaultConnectionLimits, type NodeServer } from './node-server.ts';
import { createOpenStreams, type OpenStreamLimits } from './open-streams.ts';
import { addReferenceRoutes, referencePaths } from './reference.ts';
import { createRequestLimit, type RequestLimitOptions } from './request-limit.ts';
import { addFallback, addOperationRoutes, exchangeOf, type RouteOptions } from './routes.ts';
import { createStreamHub, defaultStreamLimits, type StreamLimits } from './streams.ts';
import { oneParameter, targetPath } from './target.ts';

export interface HttpServerOptions extends Pick<CallerOptions, 'authenticate'> {
  readonly dispatch: Dispatch;
  /** Operations that have a route; left out: all. */
  readonly offers?: (entry: OperationEntry) => boolean;
  /** Mount point, such as `/acp`; empty for the root. */
  readonly prefix: string;
  readonly version: string;
  readonly title: string;
  readonly health: () => Promise<HealthState>;
  /** Null: no such route. Both are outside the prefix. */
  readonly livePath: string | null;
  readonly readyPath: string | null;
  /** Absent: no metrics, no traces. */
  readonly metrics?: MetricsOptions;
  readonly log: Logger;
  /** Exact origins that browsers may call from; none by default. */
  readonly allowedOrigins?: readonly string[];
  /** Where a request came from, for the log; default: it is not told. */
  readonly clientAddress?: ClientAddress;
  /** Whether the API description has an offered operation; left out: every one. */
  readonly describes?: (entry: OperationEntry) => boolean;
  readonly limits?: Partial<ConnectionLimits & StreamLimits>;
  /** Null or left out: requests are not limited. */
  readonly requestLimit?: RequestLimitOptions | null;
  /** Left out: any number of streams may be open. */
  readonly streamLimits?: OpenStreamLimits;
}

export interface HttpServer {
  /** Port 0 takes a free one. Rejects with `ListenError`. */
  listen(address: { readonly host: string; readonly port: number }): Promise<{ readonly url: string }>;
  /** Takes no new connection, ends idle ones at once, and cuts the others once `graceMs` (default 0) are over. */
  close(graceMs?: number): Promise<void>;
}

const noQuery = Object.freeze({});
const unlimitedStreams: OpenStreamLimits = {
  maxPerCaller: Number.POSITIVE_INFINITY,
  maxPerTenant: Number.POSITIVE_INFINITY,
};

/** What the framework refuses before a route is reached. */
const fromFramework = (error: FastifyError): unknown => {
  if (error.statusCode === 415) return new AcpError('unsupported-media-type', 'The Content-Type header is not valid.');
  if (error.statusCode !== undefined && error.statusCode < 500)
    return new AcpError('request-malformed', 'The request is not valid.');
  return error;
};

/** HTTP/1.1 asks for it of every request: without a name nothing tells which service is meant. */
const refuseHostless = (request: IncomingMessage, raw: ServerResponse, log: Logger): void => {
  const exchange: Exchange = {
    raw,
    requestId: newId(),
    method: request.method ?? '',
    path: targetPath(request.url ?? '/'),
    headers: null,
    clientAddress: null,
  };
  sendProblem(exchange, new AcpError('request-malformed', 'The request has no Host header.'), log);
  discardRest(request);
};

const createApp = (
  limits: ConnectionLimits,
  log: Logger,
  envelopeOf: EnvelopeOf,
  openEnded: readonly string[],
): { app: FastifyInstance; node: NodeServer } => {
  const bare = { cors: null, clientAddress: null, envelopeOf };
  let node: NodeServer | undefined;
  const app = fastify({
    serverFactory: (handler) => {
      node = createNodeServer(limits, (request, response) => {
        if (request.headers.host === undefined && request.httpVersion === '1.1') refuseHostless(request, response, log);
        else handler(request, response);
      });
      return node.server;
    },
    logger: false,
    genReqId: () => newId(),
    exposeHeadRoutes: false,
    ...(openEnded.length === 0 ? {} : { rewriteUrl: ({ url = '/' }: IncomingMessage) => oneParameter(url, openEnded) }),
    clientErrorHandler: answerClientError,
    frameworkErrors: (_error, request, reply) => {
      reply.hijack();
      const error = new AcpError('validation-failed', 'The path is not correctly percent-encoded.');
      sendProblem(exchangeOf(request, reply, bare), error, log);
      discardRest(request.raw);
    },
    // A slash at the end means nothing: every route answers with it as without.
    // Parameters may be as long as the request line, since their schemas say what is too long; the query is parsed
    // with the route's own rules.
    routerOptions: {
      ignoreTrailingSlash: true,
      maxParamLength: limits.maxHeaderBytes,
      querystringParser: () => noQuery,
    },
  });
  if (node === undefined) throw new Error('The framework made no server.');
  // Bodies are read after authentication, by the operation's own limit; the framework leaves them alone.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));
  app.setErrorHandler<FastifyError>((error, request, reply) => {
    reply.hijack();
    sendProblem(exchangeOf(request, reply, bare), fromFramework(error), log);
    discardRest(request.raw);
  });
  return { app, node };
};

/** The HTTP face of a dispatch: operations, event streams, health, the API description and its reference page. */
export const createHttpServer = (options: HttpServerOptions): HttpServer => {
  const limits = { ...defaultConnectionLimits, ...defaultStreamLimits, ...options.limits };
  const prefix = options.prefix.replace(/\/+$/, '');
  const { dispatch, offers = () => true, requestLimit = null } = options;
  const offered = dispatch.entries.filter(offers);
  // A door that is closed is not there: nothing below it answers in its words.
  const envelopeOf = envelopesOf(offered, prefix);
  const openEnded = offered.flatMap(({ operation: { path, takesSlashes } }) =>
    takesSlashes === true ? [prefix + path.slice(0, path.lastIndexOf('{'))] : [],
  );
  const { app, node } = createApp(limits, options.log, envelopeOf, openEnded);
  const telemetry = options.metrics?.telemetry ?? noTelemetry();
  const limit = requestLimit === null ? null : createRequestLimit(requestLimit);
  const routes: RouteOptions = {
    dispatch,
    entries: offered,
    envelopeOf,
    prefix,
    authenticate: options.authenticate,
    log: options.log,
    cors: createCors(options.allowedOrigins ?? []),
    clientAddress: options.clientAddress ?? null,
    streams: createStreamHub(limits, options.log, telemetry),
    openStreams: createOpenStreams(options.streamLimits ?? unlimitedStreams),
    limit,
    telemetry,
  };
  addOperationRoutes(app, routes);
  const described = offered.filter(options.describes ?? (() => true));
  addReferenceRoutes(app, { ...routes, entries: described, version: options.version, title: options.title });
  addHealthRoutes(app, options);
  if (options.metrics !== undefined) addMetricsRoute(app, routes, options.metrics);
  const pages = new Set<string | null>([
    ...referencePaths(prefix),
    options.livePath,
    options.readyPath,
    options.metrics?.path ?? null,
  ]);
  addFallback(app, routes, (path) => (pages.has(path) ? ['GET'] : []));
  return {
    async listen({ host, port }) {
      await app.ready();
      return node.listen(host, port);
    },
    async close(graceMs = 0) {
      limit?.close();
      await node.close(graceMs);
      await app.close();
    },
  };
};
