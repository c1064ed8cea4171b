import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { AcpError } from '../contract/errors.ts';
import type { ClientAddress } from '../core/caller/client-address.ts';
import { requestUrl } from '../core/caller/request-url.ts';
import type { Dispatch, Dispatched, OperationEntry } from '../core/dispatch.ts';
import type { Logger } from '../core/logger.ts';
import type { Telemetry } from '../core/telemetry/telemetry.ts';
import {
  type Exchange,
  type HeaderFields,
  sendEmpty,
  sendFile,
  sendJson,
  sendPage,
  sendParts,
  sendProblem,
} from './answer.ts';
import { discardRest, RequestAbortedError } from './body.ts';
import { type Cors, isPreflight } from './cors.ts';
import type { EnvelopeOf } from './envelopes.ts';
import { type CallerOptions, HttpCall, type HttpCaller, routeOf } from './http-call.ts';
import type { OpenStreams } from './open-streams.ts';
import type { StreamHub } from './streams.ts';
import { targetPath, withoutFinalSlash } from './target.ts';

export interface RouteOptions extends CallerOptions {
  readonly dispatch: Dispatch;
  /** Those of the dispatch that this server offers. */
  readonly entries: readonly OperationEntry[];
  readonly log: Logger;
  readonly cors: Cors | null;
  readonly clientAddress: ClientAddress | null;
  readonly streams: StreamHub;
  readonly openStreams: OpenStreams;
  readonly envelopeOf: EnvelopeOf;
  readonly telemetry: Telemetry;
}

/** Only a file, and what comes in parts, is sent for longer than this takes: its promise is the caller's to wait for. */
const sendReply = (
  exchange: Exchange,
  reply: Dispatched,
  { operation }: OperationEntry,
  { streams, log }: RouteOptions,
): Promise<void> | undefined => {
  if ('file' in reply) return sendFile(exchange, reply, log);
  if ('parts' in reply) return sendParts(exchange, reply, log);
  if ('stream' in reply) streams.open(exchange, reply);
  else if (reply.body === undefined) sendEmpty(exchange, reply.status, reply.headers);
  else if (operation.page === true) sendPage(exchange, reply.status, reply.headers, String(reply.body));
  else sendJson(exchange, reply.status, reply.headers, reply.body);
  return undefined;
};

interface ExchangeOptions {
  readonly cors: Cors | null;
  readonly clientAddress: ClientAddress | null;
  readonly envelopeOf: EnvelopeOf;
}

const bareExchange: ExchangeOptions = { cors: null, clientAddress: null, envelopeOf: () => undefined };

export const exchangeOf = (
  request: FastifyRequest,
  reply: FastifyReply,
  { cors, clientAddress, envelopeOf }: ExchangeOptions = bareExchange,
): Exchange => {
  const path = withoutFinalSlash(targetPath(request.raw.url ?? '/'));
  const envelope = envelopeOf(path);
  return {
    raw: reply.raw,
    requestId: request.id,
    method: request.raw.method ?? '',
    path,
    headers: cors === null ? null : cors.fieldsFor(request.raw),
    clientAddress,
    ...(envelope === undefined ? {} : { envelope }),
  };
};

/** Answers with what a caller is told of an error; one that is gone is told nothing. */
export const refuse = (
  { exchange }: HttpCaller,
  request: FastifyRequest,
  error: unknown,
  { log, limit }: Pick<RouteOptions, 'log' | 'limit'>,
  fields?: HeaderFields,
): void => {
  if (error instanceof RequestAbortedError) return;
  sendProblem(exchange, error, log, { ...limit?.refusal(error), ...fields });
  discardRest(request.raw);
};

/** Where a caller without a credential learns how to get one. */
const challenge = (
  { prefix }: RouteOptions,
  { operation }: OperationEntry,
  { raw }: FastifyRequest,
  error: unknown,
): HeaderFields | undefined => {
  const { resourceMetadata } = operation;
  if (resourceMetadata === undefined || !(error instanceof AcpError) || error.status !== 401) return undefined;
  const url = requestUrl(prefix + resourceMetadata, (name) => raw.headers[name]?.toString());
  return url === null ? undefined : { 'www-authenticate': `Bearer resource_metadata="${url}"` };
};

const serve = async (
  options: RouteOptions,
  entry: OperationEntry,
  request: FastifyRequest,
  call: HttpCall,
): Promise<void> => {
  try {
    const reply = await options.dispatch.call(entry, call);
    const sending = sendReply(call.exchange, reply, entry, options);
    if (sending !== undefined) await sending;
  } catch (error) {
    call.upload?.stop();
    refuse(call, request, error, options, challenge(options, entry, request, error));
  }
};

const patternOf = (path: string): RegExp =>
  new RegExp(
    `^${path
      .split(/\{[^}]+\}/)
      .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
      .join('[^/]+')}$`,
  );

/** The methods that the table has for a path as called, for `Allow`. */
const methodsFor = (entries: readonly OperationEntry[]): ((path: string) => readonly string[]) => {
  const patterns = entries.map(({ operation }) => ({ pattern: patternOf(operation.path), method: operation.method }));
  return (path) =>
    [...new Set(patterns.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method))].sort();
};

export const refuseUnknown = ({ raw }: FastifyRequest, exchange: Exchange, log: Logger): void => {
  const error =
    exchange.envelope === undefined
      ? new AcpError('not-found', 'There is nothing at this path.')
      : new AcpError('unknown-url', `Unknown request URL: ${exchange.method} ${exchange.path}.`);
  sendProblem(exchange, error, log);
  discardRest(raw);
};

/** `/items/` is not the item without a name, though the router sees it so. */
const hasEmptyParameter = ({ params }: FastifyRequest): boolean => Object.values(params as object).includes('');

/** One route for each operation of the table. */
export const addOperationRoutes = (app: FastifyInstance, options: RouteOptions): void => {
  const requests = options.telemetry.metrics.counter(
    'acp.openai.requests',
    'Requests of clients of the OpenAI API that ended.',
    '{request}',
    ['acp.openai.route', 'http.response.status_code'],
  );
  for (const entry of options.entries) {
    const route = routeOf(entry, options.clientAddress);
    app.route({
      method: entry.operation.method,
      url: options.prefix + entry.operation.path.replace(/\{([^}]+)\}/g, ':$1'),
      // Ahead of what the framework does with bodies, which is not for it to read.
      onRequest: (request, reply) => {
        reply.hijack();
        const exchange = exchangeOf(request, reply, options);
        if (entry.operation.envelope === 'OpenAi')
          reply.raw.once('close', () => requests.add(1, [entry.operation.path, reply.raw.statusCode]));
        if (hasEmptyParameter(request)) refuseUnknown(request, exchange, options.log);
        else void serve(options, entry, request, new HttpCall(options, route, request, exchange));
      },
      handler: () => {
        throw new Error('A request was answered twice.');
      },
    });
  }
};

/** Everything without a route: preflights, wrong methods (405 with `Allow`) and unknown paths (404). */
export const addFallback = (
  app: FastifyInstance,
  options: RouteOptions,
  pageMethods: (path: string) => readonly string[],
): void => {
  const operationMethods = methodsFor(options.entries);
  app.setNotFoundHandler((request, reply) => {
    reply.hijack();
    const exchange = exchangeOf(request, reply, options);
    const methods = exchange.path.startsWith(options.prefix)
      ? [...operationMethods(exchange.path.slice(options.prefix.length)), ...pageMethods(exchange.path)]
      : pageMethods(exchange.path);
    if (methods.length === 0) {
      refuseUnknown(request, exchange, options.log);
      return;
    }
    if (options.cors !== null && exchange.headers !== null && isPreflight(request.raw))
      sendEmpty(exchange, 204, options.cors.preflightFields(request.raw, methods));
    else {
      const error = new AcpError('method-not-allowed', `This path takes ${methods.join(', ')}.`);
      sendProblem(exchange, error, options.log, { allow: methods.join(', ') });
    }
    discardRest(request.raw);
  });
};
