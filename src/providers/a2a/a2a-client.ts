import type { TraceHeaders } from '../../core/telemetry/trace-context.ts';
import type { OpenedResponse, OutboundHttp } from '../http/outbound.ts';
import { OutboundError } from '../http/outbound-error.ts';
import { readEvents } from '../mcp/event-messages.ts';
import { mediaType, readText } from '../mcp/http-channel.ts';
import { McpFailure } from '../mcp/mcp-failure.ts';
import { sleep } from '../mcp/sleep.ts';
import { parseMessage, type RpcMessage } from '../mcp/wire/json-rpc.ts';
import type { A2aVersion, AgentCard } from './agent-card.ts';
import { createTaskReading, type TaskReading } from './task-reading.ts';

type Method = 'send' | 'stream' | 'subscribe' | 'get' | 'cancel';

const methods: Readonly<Record<A2aVersion, Readonly<Record<Method, string>>>> = {
  '1.0': {
    ...{ send: 'SendMessage', stream: 'SendStreamingMessage', subscribe: 'SubscribeToTask' },
    ...{ get: 'GetTask', cancel: 'CancelTask' },
  },
  '0.3': {
    ...{ send: 'message/send', stream: 'message/stream', subscribe: 'tasks/resubscribe' },
    ...{ get: 'tasks/get', cancel: 'tasks/cancel' },
  },
};

export interface A2aClientDeps {
  readonly http: Pick<OutboundHttp, 'open'>;
  readonly card: Pick<AgentCard, 'url' | 'protocol' | 'streams'>;
  /** The whole Authorization header; null: none is sent. */
  readonly authorization: string | null;
  readonly trace?: Partial<TraceHeaders>;
  /** Largest answer that is read. */
  readonly maxBytes: number;
  /** For each request but the one that waits for the answer, and for silence on a stream once its task is known. */
  readonly requestTimeoutMs: number;
  /** After each request. */
  readonly requested: (method: string, seconds: number, failure: unknown) => void;
}

export interface Conversation {
  readonly text: string;
  /** Equal each time the same message is sent. */
  readonly messageId: string;
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  /** Each time the other side has said something. */
  readonly told: (reading: TaskReading) => void;
}

// Of an answer that is no success only the number counts.
const maxErrorBytes = 65_536;
// Looks at a task, and subscriptions to it, come at first quickly, then more and more seldom.
const firstPauseMs = 250;
const longestPauseMs = 5000;
/** Looks in a row that may fail before the task is given up. */
const maxFailedLooks = 5;
const cancelTimeoutMs = 5000;
// Refused before anything was done: the agent has no streams, whatever its card says.
const noStreams: ReadonlySet<number | null> = new Set([-32_004, -32_601]);

const rpcFailure = ({ code, message }: Extract<RpcMessage, { kind: 'error' }>['error'], status?: number): McpFailure =>
  new McpFailure('rpc', { code, status, cause: new Error(message.slice(0, 500)) });

const failureOf = (error: unknown): unknown =>
  error instanceof OutboundError ? new McpFailure('no-answer', { cause: error }) : error;

/** Why an answer outside 2xx is none. */
const refusal = async (answer: OpenedResponse): Promise<McpFailure> => {
  const { status } = answer;
  if (status === 401) {
    answer.close();
    return new McpFailure('unauthorized', { status });
  }
  let text = '';
  try {
    text = await readText(answer, maxErrorBytes);
  } catch (cause) {
    // The status has come, which is enough.
    return new McpFailure('http', { status, cause });
  }
  const message = mediaType(answer) === 'application/json' ? parseMessage(text) : null;
  return message?.kind === 'error' ? rpcFailure(message.error, status) : new McpFailure('http', { status });
};

const isStreamed = (method: Method): boolean => method === 'stream' || method === 'subscribe';

/** A look that failed for a reason that may pass. */
const mayPass = (error: unknown): boolean =>
  error instanceof McpFailure &&
  (error.kind === 'no-answer' ||
    error.kind === 'broken' ||
    (error.kind === 'http' && (error.status === 429 || (error.status ?? 0) >= 500)));

/** The Agent2Agent protocol as its caller speaks it, over JSON-RPC. Throws McpFailure, whose words name nothing of the other side. */
export const createA2aClient = (deps: A2aClientDeps) => {
  const { http, card, maxBytes } = deps;
  const named = methods[card.protocol];
  const isLegacy = card.protocol === '0.3';
  let lastId = 0;

  const open = async (
    method: Method,
    params: unknown,
    limits: { readonly signal?: AbortSignal; readonly timeoutMs: number },
  ): Promise<OpenedResponse> => {
    lastId += 1;
    const answer = await http.open({
      method: 'POST',
      url: card.url,
      headers: {
        'content-type': 'application/json',
        accept: isStreamed(method) ? 'text/event-stream, application/json' : 'application/json',
        'a2a-version': card.protocol,
        ...(deps.authorization === null ? {} : { authorization: deps.authorization }),
        ...deps.trace,
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: lastId, method: named[method], params }),
      ...limits,
    });
    if (answer.status < 200 || answer.status > 299) throw await refusal(answer);
    return answer;
  };
  const fromMessage = (text: string): Readonly<Record<string, unknown>> => {
    const message = parseMessage(text);
    if (message?.kind === 'error') throw rpcFailure(message.error);
    if (message?.kind !== 'result') throw new McpFailure('broken');
    return message.result;
  };
  const fromDocument = async (answer: OpenedResponse): Promise<Readonly<Record<string, unknown>>> => {
    if (mediaType(answer) === 'application/json') return fromMessage(await readText(answer, maxBytes));
    answer.close();
    throw new McpFailure('broken', { status: answer.status });
  };
  const measured = async <T>(method: Method, work: () => Promise<T>): Promise<T> => {
    const startedAt = performance.now();
    const done = (failure: unknown): void =>
      deps.requested(named[method], (performance.now() - startedAt) / 1000, failure);
    try {
      const result = await work();
      done(null);
      return result;
    } catch (error) {
      const failure = failureOf(error);
      done(failure);
      throw failure;
    }
  };
  const request = (method: Method, params: unknown, limits: Parameters<typeof open>[2]) =>
    measured(method, async () => fromDocument(await open(method, params, limits)));

  const of = async (method: 'get' | 'cancel', id: string): Promise<TaskReading> => {
    const reading = createTaskReading();
    if (!reading.take(await request(method, { id }, { timeoutMs: deps.requestTimeoutMs })))
      throw new McpFailure('broken');
    return reading;
  };

  const message = ({ text, messageId }: Conversation) =>
    isLegacy
      ? { kind: 'message', messageId, role: 'user', parts: [{ kind: 'text', text }] }
      : { messageId, role: 'ROLE_USER', parts: [{ text }] };
  const take = (reading: TaskReading, result: Readonly<Record<string, unknown>>, { told }: Conversation): void => {
    if (!reading.take(result)) throw new McpFailure('broken');
    told(reading);
  };

  const send = async (reading: TaskReading, conversation: Conversation): Promise<void> => {
    const configuration = isLegacy ? { blocking: false } : { returnImmediately: true };
    const { signal, timeoutMs } = conversation;
    const result = await request('send', { message: message(conversation), configuration }, { signal, timeoutMs });
    take(reading, result, conversation);
  };
  /** Leaves a stream on which nothing comes any more. Before the task is known nobody could go on with it. */
  const heard = async function* ({ body, close }: OpenedResponse, reading: TaskReading): AsyncGenerator<Uint8Array> {
    const timer = setTimeout(() => (reading.task === null ? timer.refresh() : close()), deps.requestTimeoutMs);
    try {
      for await (const chunk of body) {
        timer.refresh();
        yield chunk;
      }
    } finally {
      clearTimeout(timer);
    }
  };
  /** Reads a stream as far as it goes. One that breaks off once the task is known is no failure: the task can be looked at. */
  const follow = async (reading: TaskReading, conversation: Conversation, answer: OpenedResponse): Promise<void> => {
    try {
      for await (const { data } of readEvents(heard(answer, reading), { maxBytes, of: 'stream' })) {
        if (data === '') continue;
        take(reading, fromMessage(data), conversation);
        if (reading.hasEnded) return;
      }
    } catch (error) {
      const isCut = error instanceof McpFailure && (error.kind === 'no-answer' || error.kind === 'broken');
      if (!isCut || reading.task === null || conversation.signal.aborted) throw error;
    } finally {
      answer.close();
    }
    if (reading.task === null) throw new McpFailure('no-answer', { cause: new OutboundError('unreachable') });
  };
  const streamed = (
    method: 'stream' | 'subscribe',
    params: unknown,
    reading: TaskReading,
    conversation: Conversation,
  ): Promise<void> =>
    measured(method, async () => {
      const { signal, timeoutMs } = conversation;
      const answer = await open(method, params, { signal, timeoutMs });
      if (mediaType(answer) === 'text/event-stream') await follow(reading, conversation, answer);
      else take(reading, await fromDocument(answer), conversation);
    });
  /** True: the stream of a task that goes on was read as far as it went. Whoever has none, or not now, is looked at. */
  const subscribed = async (id: string, reading: TaskReading, conversation: Conversation): Promise<boolean> => {
    reading.missed();
    try {
      await streamed('subscribe', { id }, reading, conversation);
      return true;
    } catch (error) {
      if (!(error instanceof McpFailure) || conversation.signal.aborted) throw error;
      return false;
    }
  };
  /** Follows the task until it is over: by its stream as long as there is one, then by looking at it again and again. */
  const watch = async (reading: TaskReading, conversation: Conversation, streams: boolean): Promise<void> => {
    let subscribes = streams;
    let pauseMs = firstPauseMs;
    let failed = 0;
    while (!reading.isOver && reading.task !== null) {
      await sleep(pauseMs, conversation.signal);
      pauseMs = Math.min(pauseMs * 2, longestPauseMs);
      const { id } = reading.task;
      if (subscribes) {
        subscribes = await subscribed(id, reading, conversation);
        // Whatever kept it from the end, a look says how far the task is.
        if (reading.isOver) return;
      }
      try {
        const limits = { signal: conversation.signal, timeoutMs: deps.requestTimeoutMs };
        take(reading, await request('get', { id }, limits), conversation);
        failed = 0;
      } catch (error) {
        failed += 1;
        if (!mayPass(error) || failed > maxFailedLooks || conversation.signal.aborted) throw error;
      }
    }
  };

  return {
    /** Sends a message and waits for the end of what comes of it. */
    async ask(conversation: Conversation): Promise<TaskReading> {
      const reading = createTaskReading();
      let streams = card.streams;
      if (streams)
        try {
          await streamed('stream', { message: message(conversation) }, reading, conversation);
        } catch (error) {
          if (!(error instanceof McpFailure) || !noStreams.has(error.code) || reading.task !== null) throw error;
          streams = false;
        }
      if (!streams) await send(reading, conversation);
      await watch(reading, conversation, streams);
      return reading;
    },
    /** A task as it is now. */
    look: (taskId: string): Promise<TaskReading> => of('get', taskId),
    /** Ends a task; as it is then. */
    end: (taskId: string): Promise<TaskReading> => of('cancel', taskId),
    /** Asks the other side to end a task. Whether it hears of it has no bearing on whoever has stopped waiting. */
    async cancel(taskId: string): Promise<void> {
      await request('cancel', { id: taskId }, { timeoutMs: cancelTimeoutMs }).catch(() => undefined);
    },
  };
};

export type A2aClient = ReturnType<typeof createA2aClient>;
