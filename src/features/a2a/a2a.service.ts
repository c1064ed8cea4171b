import { AcpError, isRunFailure } from '../../contract/errors.ts';
import { type RpcId, type RpcRequest, rpcCodes, rpcFailure, rpcResult } from '../../contract/json-rpc.ts';
import { ok } from '../../contract/operation.ts';
import type { Json } from '../../contract/schema.ts';
import { requestUrl } from '../../core/caller/request-url.ts';
import type { CallContext, Handlers, UnreadCall } from '../../core/context.ts';
import { hasTag } from '../../core/entity-tags.ts';
import { accepts, readRpcMessage } from '../../core/json-rpc-message.ts';
import type { Logger } from '../../core/logger.ts';
import type { ExposedAgent, ExposedAgents, ExposedRuns } from '../exposure/index.ts';
import type { a2aOperations } from './a2a.operations.ts';
import type { ProtocolVersion } from './a2a.schema.ts';
import { type A2ACalls, isStreaming, type VersionedCall } from './a2a-calls.ts';
import { A2AError, protocolError } from './a2a-errors.ts';
import type { A2ATelemetry, TracedCall } from './a2a-telemetry.ts';
import { askedExtensions, cardVersion, protocolVersion, resumeExtension } from './a2a-versions.ts';
import { agentCard, type CardSettings, cardTag, outputModes, type PublicAgent } from './agent-card.rules.ts';
import type { TaskStreams } from './task-streams.ts';

export interface A2AServiceDeps {
  readonly agents: Pick<ExposedAgents, 'find'>;
  readonly runs: Pick<ExposedRuns, 'keyOf'>;
  readonly calls: A2ACalls;
  readonly streams: TaskStreams;
  readonly telemetry: A2ATelemetry;
  readonly settings: Omit<CardSettings, 'url' | 'version'> & {
    /** Address of the service without its prefix; null: as the request has it. */
    readonly publicBaseUrl: string | null;
    /** Where the service listens, for requests that do not say which host they are for. */
    readonly listenUrl: string;
    readonly prefix: string;
    /** Below the prefix. */
    readonly path: string;
    readonly maxRequestBytes: number;
    readonly publicCards: boolean;
    /** Header that may name the tenant; null: none may. */
    readonly tenantHeader: string | null;
    readonly records: boolean;
  };
  readonly log: Pick<Logger, 'error'>;
}

type Call = Handlers<typeof a2aOperations>['call'];
type CallInput = Parameters<Call>[1];
type CallReply = Awaited<ReturnType<Call>>;

type AddressHeaders = Pick<CallInput['headers'], 'host' | 'x-forwarded-host' | 'x-forwarded-proto'>;

/** What a card may depend on beside its address. */
const cardHeaders = ['A2A-Version', 'Authorization', 'X-Api-Key', 'X-Forwarded-Host', 'X-Forwarded-Proto', 'Origin'];

const missing = (): AcpError => new AcpError('not-found', 'There is nothing at this path.');

const publicAgent = ({ compiled, ...agent }: ExposedAgent): PublicAgent => ({
  ...agent,
  answersJson: compiled.model.responseFormat !== null,
});

/** One request while it is answered: what of it could be read so far decides in which words. */
interface Answering {
  version: ProtocolVersion;
  id: RpcId | null;
  /** Null: the version has none of this name, or it could not be read. */
  method: string | null;
  traced: TracedCall;
}

/** What is told of a request that could not be read, in the words that its sender seems to speak. */
const assumedVersion = (header: string | undefined, legacy: boolean): ProtocolVersion => {
  try {
    return protocolVersion(header, null, legacy);
  } catch {
    // Of a version that is not served here; the answer says so.
    return '1.0';
  }
};

const typeOf = (error: unknown): string => {
  if (error instanceof A2AError) return error.reason;
  return error instanceof AcpError ? error.code : 'internal';
};

export const a2aService = (deps: A2AServiceDeps): Handlers<typeof a2aOperations> => {
  const { agents, calls, streams, telemetry, settings } = deps;
  // A cache that others share gives a card to nobody who has sent something else.
  const Vary = [...cardHeaders, ...(settings.tenantHeader === null ? [] : [settings.tenantHeader])].join(', ');

  /** Address of the service, as its callers reach it. */
  const baseOf = (headers: AddressHeaders): string => {
    const { publicBaseUrl, listenUrl, prefix } = settings;
    if (publicBaseUrl !== null) return publicBaseUrl.replace(/\/$/, '') + prefix;
    return requestUrl(prefix, (name) => headers[name as keyof AddressHeaders]) ?? listenUrl + prefix;
  };

  /** Throws the same 404 for every agent that is not offered to the caller's tenant. */
  const find = async (tenantId: string, name: string): Promise<ExposedAgent> => {
    const agent = await agents.find(tenantId, name);
    if (agent === null) throw missing();
    return agent;
  };

  const positionsOf = (headers: CallInput['headers'], asked: ReturnType<typeof askedExtensions>) => {
    if (!asked.some(({ uri }) => uri === resumeExtension)) return null;
    const seen = headers['last-event-id'] ?? '';
    return { seen: seen === '' ? null : seen };
  };

  /** The one request that a call brings. Throws what is wrong with it. */
  const readRequest = async (context: UnreadCall, input: CallInput, answering: Answering): Promise<RpcRequest> => {
    const { headers } = input;
    const types = ['application/json', 'text/event-stream'];
    const message = await readRpcMessage(context, headers, settings.maxRequestBytes, types);
    if (message.kind === 'request') {
      answering.id = message.id;
      return message;
    }
    if (message.kind !== 'invalid') throw new A2AError('InvalidRequest', 'A request has a method and an id.');
    answering.id = message.id;
    const { code, message: why } = message.error;
    if (code === rpcCodes.parseError) throw new A2AError('ParseError', why);
    if (code === rpcCodes.invalidParams) throw new A2AError('InvalidParams', why);
    throw new A2AError(message.isObject ? 'InvalidRequest' : 'NoRequest', why);
  };

  const assertAccepts = (accept: string | undefined, type: string): void => {
    if (!accepts(accept, type)) throw new AcpError('not-acceptable', `Accept must name ${type}.`);
  };

  const answer = async (
    context: CallContext & UnreadCall,
    input: CallInput,
    answering: Answering,
  ): Promise<CallReply> => {
    const { params, headers } = input;
    const agent = await find(context.tenantId, params.agent);
    if (!settings.records)
      throw new AcpError('run-recording-disabled', 'Tasks need run recording, which is switched off.');
    const request = await readRequest(context, input, answering);
    const version = protocolVersion(headers['a2a-version'], request.method, settings.legacy);
    answering.version = version;
    const method = calls.method(version, request.method);
    answering.method = request.method;
    answering.traced = telemetry.begin(context.trace ?? null, request.method, agent.name);
    const { span } = answering.traced;
    assertAccepts(headers.accept, isStreaming(method) ? 'text/event-stream' : 'application/json');
    if (isStreaming(method)) context.openStream?.();
    const asked = askedExtensions(headers['a2a-extensions'] ?? headers['x-a2a-extensions']);
    calls.assertExtensions(asked.flatMap(({ uri, required }) => (required ? [uri] : [])));
    const described = publicAgent(agent);
    const call: VersionedCall = {
      context: { ...context, trace: span ?? context.trace ?? null, rawBody: null, readBody: undefined },
      agentName: agent.name,
      door: deps.runs.keyOf(context),
      answersJson: described.answersJson,
      outputModes: outputModes(described),
      base: baseOf(headers),
      positions: positionsOf(headers, asked),
      version,
    };
    const extensions = call.positions === null ? {} : { 'A2A-Extensions': resumeExtension };
    const told = { 'A2A-Version': version, ...extensions };
    const answered = await calls.answer(method, call, request);
    if ('result' in answered)
      return { status: 200, body: { jsonrpc: '2.0', id: request.id, result: answered.result as Json }, headers: told };
    const text = (event: Parameters<typeof calls.event>[1]): string =>
      JSON.stringify(rpcResult(request.id, calls.event(version, event)));
    return streams.reply({ ...answered.stream, text }, told);
  };

  /** Failures as the protocol tells them; what only HTTP has a word for is thrown on. */
  const failed = (error: unknown, context: CallContext, { version, id }: Answering): CallReply => {
    const failure = protocolError(error, context.requestId);
    if (failure === null) throw error;
    if (failure.kind === 'Internal' && !isRunFailure(error))
      deps.log.error({ requestId: context.requestId, error: failure.cause }, 'A request of another agent failed');
    const body = rpcFailure(id, failure.in(version));
    const headers = { 'A2A-Version': version };
    return failure.isMalformed ? { status: 400, body, headers } : { status: 200, body, headers };
  };

  return {
    async card(context, { params, headers }) {
      const agent = publicAgent(await find(context.tenantId, params.agent));
      const { path, legacy, provider, issuer, allowedMediaTypes, publicCards } = settings;
      const url = `${baseOf(headers)}${path}/${encodeURIComponent(agent.name)}`;
      const version = cardVersion(headers['a2a-version'], legacy);
      const card = agentCard(agent, { url, legacy, version, provider, issuer, allowedMediaTypes });
      const tag = cardTag(card);
      const fields = { ETag: tag, 'Cache-Control': `${publicCards ? 'public' : 'private'}, max-age=300`, Vary };
      if (hasTag(headers['if-none-match'], tag)) return { status: 304, headers: fields };
      return ok(card, fields);
    },

    async call(context, input) {
      const answering: Answering = {
        version: assumedVersion(input.headers['a2a-version'], settings.legacy),
        id: null,
        method: null,
        traced: telemetry.untraced(),
      };
      let errorType: string | null = null;
      try {
        return await answer(context, input, answering);
      } catch (error) {
        errorType = typeOf(error);
        return failed(error, context, answering);
      } finally {
        telemetry.end(answering.traced, answering.method, answering.version, errorType);
      }
    },
  };
};
