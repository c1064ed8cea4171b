import { createHash } from 'node:crypto';
import type { Logger } from '../../core/logger.ts';
import type { TraceHeaders } from '../../core/telemetry/trace-context.ts';
import type { RemoteAgentPinRow } from '../../db/tables/remote-agents.ts';
import {
  cutText,
  endedTaskStates,
  type LostRemoteTasks,
  type RemoteAgent,
  type RemoteRequest,
  type RemoteTaskEnd,
  ToolStop,
} from '../../engine/tools/index.ts';
import { type A2aClient, createA2aClient } from '../../providers/a2a/a2a-client.ts';
import type { AgentCard } from '../../providers/a2a/agent-card.ts';
import type { KnownTask, TaskReading } from '../../providers/a2a/task-reading.ts';
import type { OutboundHttp } from '../../providers/http/outbound.ts';
import { failureType, McpFailure } from '../../providers/mcp/mcp-failure.ts';
import { visibleText } from '../../providers/mcp/visible-text.ts';
import {
  type AgentCards,
  CardProblem,
  type ConfiguredAgent,
  errorTypeOf,
  type FoundCard,
  failureText,
  heldBack,
} from './agent-cards.ts';
import type { KnownAgents } from './known-agents.ts';
import type { RemoteAgentStore } from './remote-agents.store.ts';
import type { RemoteAgentTelemetry } from './remote-telemetry.ts';
import { replyText } from './reply-text.ts';

export interface RemoteWorkDeps {
  readonly cards: AgentCards;
  readonly store: Pick<RemoteAgentStore, 'pin'>;
  readonly http: Pick<OutboundHttp, 'open'>;
  readonly requestTimeoutMs: number;
  readonly telemetry: RemoteAgentTelemetry;
  readonly log: Pick<Logger, 'warn'>;
}

// An answer that a model could never read.
const maxAnswerBytes = 16 * 1024 * 1024;
const maxIdLength = 256;

const stop = (text: string, cause?: unknown): ToolStop => {
  const stopped = new ToolStop('failed', text);
  if (cause !== undefined) stopped.cause = cause;
  return stopped;
};

/** Equal for every execution of the same call, and known to nobody else. */
const messageIdOf = (idempotencyKey: string): string =>
  createHash('sha256').update(`a2a ${idempotencyKey}`).digest('hex').slice(0, 32);

const told = (text: string): string => cutText(visibleText(text), maxIdLength);

/** Why a task that is over has no answer; null: it has one. */
const endText = (name: string, { state }: KnownTask): string | null => {
  if (state === 'COMPLETED') return null;
  if (state === 'INPUT_REQUIRED') return `Tool failed: ${name} asks for more, and nobody can answer it here`;
  if (state === 'AUTH_REQUIRED') return `Tool failed: ${name} asks for a credential that nobody can give it here`;
  if (state === 'REJECTED') return `Tool failed: ${name} has rejected the task`;
  return state === 'CANCELED' ? `Tool failed: ${name} has canceled the task` : `Tool failed: ${name} has failed`;
};

const openSpan = ({ openSpan: open }: RemoteRequest, name: string, { url, protocol }: AgentCard) =>
  open?.(
    `a2a ${name}`,
    {
      'rpc.system': 'jsonrpc',
      'acp.a2a.version': protocol,
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.agent.name': name,
      'server.address': url.hostname,
      'server.port': url.port === '' ? (url.protocol === 'http:' ? 80 : 443) : Number(url.port),
    },
    'Client',
  );

type Asking = Pick<RemoteRequest, 'tenantId' | 'runId'> & Partial<Pick<RemoteRequest, 'requestId'>>;

/** How an agent of another system is spoken to. */
const spokenTo = (agent: ConfiguredAgent, deps: RemoteWorkDeps) => {
  const { name, pinning } = agent;

  /** Throws ToolStop where the card is not as its tenant's pin wants it. */
  const admit = (request: Asking, pin: RemoteAgentPinRow | undefined, { card, hash }: FoundCard): void => {
    if (pinning === 'Block' && pin === undefined) throw stop(`Tool failed: nobody has approved ${name}`);
    const isSame = pin?.hash === hash;
    if (pinning === 'Block' && !isSame) throw stop(`Tool failed: ${name} is not as it was approved`);
    if (pinning === 'Warn' && pin !== undefined && !isSame)
      deps.log.warn(
        { requestId: request.requestId, runId: request.runId, remoteAgent: agent.id, hash },
        'A remote agent is called whose card is not as it was approved',
      );
    // A card may name any address; the credential was given for where the card is.
    const isElsewhere = card.url.origin !== new URL(agent.cardUrl).origin;
    if (agent.authorizationKey !== null && isElsewhere && !isSame)
      throw stop(`Tool failed: nobody has approved where ${name} takes messages`);
  };

  /** Throws ToolStop and CardProblem. */
  const open = async (request: Asking) => {
    const pin = await deps.store.pin(request.tenantId, agent.pinId);
    const held = heldBack(agent, pin);
    if (held !== null) throw held;
    const { found, failure } = await deps.cards.current(agent);
    if (found === null) throw stop(failure ?? `Tool failed: ${name} is not available`);
    admit(request, pin, found);
    const authorization = deps.cards.credentialOf(agent);
    /** `trace`: what its requests are part of. */
    const client = (trace: Partial<TraceHeaders>): A2aClient =>
      createA2aClient({
        ...{ authorization, trace },
        http: deps.http,
        card: found.card,
        maxBytes: maxAnswerBytes,
        requestTimeoutMs: deps.requestTimeoutMs,
        requested: (method, seconds, failure) => deps.telemetry.requested(name, method, seconds, errorTypeOf(failure)),
      });
    return { client, card: found.card };
  };
  return { open };
};

/** Makes an agent of another system one that runs can call; `agentIn` is what it is in the tenant of a run. */
export const remoteAgentOf = (
  { name, id, timeoutMs }: Pick<ConfiguredAgent, 'name' | 'id' | 'timeoutMs'>,
  agentIn: (tenantId: string) => ConfiguredAgent,
  deps: RemoteWorkDeps,
): RemoteAgent => {
  const ask = async (request: RemoteRequest): Promise<TaskReading> => {
    const found = await spokenTo(agentIn(request.tenantId), deps).open(request);
    const span = openSpan(request, name, found.card);
    const client = found.client(span?.headers ?? {});
    let errorType: string | null = null;
    let known: KnownTask | null = null;
    try {
      const reading = await client.ask({
        text: request.message,
        messageId: messageIdOf(request.idempotencyKey),
        signal: request.signal,
        timeoutMs,
        told({ task }) {
          if (task === null) return;
          known = task;
          const { id: taskId, contextId, state } = task;
          request.told({
            agent: id,
            taskId: told(taskId),
            contextId: contextId === null ? null : told(contextId),
            state,
          });
        },
      });
      // Nobody will answer it, so it need not wait.
      if (reading.task?.state.endsWith('_REQUIRED') === true) void client.cancel(reading.task.id);
      return reading;
    } catch (error) {
      errorType = errorTypeOf(error);
      const task = known as KnownTask | null;
      if (request.signal.aborted && task !== null) void client.cancel(task.id);
      throw error;
    } finally {
      span?.close(errorType);
    }
  };

  return {
    ...{ name, id, timeoutMs },
    async answer(request) {
      let reading: TaskReading;
      try {
        reading = await ask(request);
      } catch (error) {
        // The credential that the card was found with is gone since.
        if (error instanceof CardProblem) throw stop(error.failure);
        if (!(error instanceof McpFailure)) throw error;
        const { requestId, runId } = request;
        deps.log.warn(
          { requestId, runId, remoteAgent: id, error: failureType(error), err: error },
          'A call of a remote agent failed',
        );
        throw stop(failureText(name, error), error);
      }
      const end = reading.task === null ? null : endText(name, reading.task);
      if (end !== null) throw stop(end);
      return replyText(reading.parts(), request.saveAttachment);
    },
  };
};

// JSON-RPC codes of the protocol. A task that cannot be canceled has just ended, or cannot be from here at the moment.
const taskNotFound = -32_001;
const notNow = -32_002;

const endOf = ({ task }: TaskReading): RemoteTaskEnd =>
  task !== null && endedTaskStates.has(task.state)
    ? { kind: 'over', state: task.state }
    : { kind: 'open', again: true };

/** Ends a task, unless a look says that it is over. Not every agent can be looked at: then it is told all the same. */
const endTask = async (client: Pick<A2aClient, 'look' | 'end'>, taskId: string): Promise<RemoteTaskEnd> => {
  const seen = await client.look(taskId).then(endOf, (error: unknown) => {
    if (error instanceof McpFailure && error.kind === 'rpc' && error.code !== taskNotFound) return null;
    throw error;
  });
  return seen?.kind === 'over' ? seen : endOf(await client.end(taskId));
};

/** What becomes of tasks there whose run here was lost with its process. */
export const lostRemoteTasks = (known: Pick<KnownAgents, 'find'>, deps: RemoteWorkDeps): LostRemoteTasks => ({
  // A call that may be made again is the same message then: the agent there can go on with the task that it has.
  async ends(tenantId, agentId) {
    const effect = (await known.find(tenantId, agentId))?.effect;
    return effect === 'Destructive' || effect === 'External';
  },
  async end(run, { agent: agentId, taskId }) {
    const agent = await known.find(run.tenantId, agentId);
    if (agent === undefined || taskId === null) return { kind: 'open', again: false };
    try {
      const { client } = await spokenTo(agent, deps).open(run);
      return await endTask(client({}), taskId);
    } catch (error) {
      if (!(error instanceof ToolStop || error instanceof CardProblem || error instanceof McpFailure)) throw error;
      if (error instanceof McpFailure && error.code === taskNotFound) return { kind: 'over', state: null };
      deps.log.warn(
        { runId: run.runId, remoteAgent: agentId, err: error },
        'The task of a run that was lost could not be canceled',
      );
      // What the agent refuses in the words of the protocol it refuses the next time as well.
      return { kind: 'open', again: !(error instanceof McpFailure && error.kind === 'rpc') || error.code === notNow };
    }
  },
});
