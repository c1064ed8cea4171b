import { setTimeout as pause } from 'node:timers/promises';
import { call, openStream, type SseFrame } from '../e2e/wire.ts';
import { inTime } from '../support/eventually.ts';

export const terminal = /^run\.(completed|failed|canceled|paused)$/;

/** What an agent has used of what is bounded; the cost is in micro-units. */
export interface Use {
  readonly runs: number;
  readonly tokens: number;
  readonly cost: number;
}

export const microUnits = (amount: number): number => Math.round(amount * 1e6);

/** What clients of a fleet were told while processes came and went: what the store has to agree with at the end. */
export interface History {
  /** Runs that were answered as a stream, with all frames that came: where it was cut, the client went on after its last one. */
  readonly streams: Map<string, readonly SseFrame[]>;
  /** Runs that were answered whole, with their text. */
  readonly answers: Map<string, string>;
  /** Runs that were accepted for later. */
  readonly queued: Set<string>;
  /** Turns of each session whose answer came whole, in their order. */
  readonly turns: Map<string, string[]>;
  /** Orders that somebody asked for; each calls its tools once. */
  readonly orders: Set<string>;
  /** Runs whose client gave up asking how they go on, with what it was answered last. */
  readonly untold: Map<string, string>;
  /** Connections on which a client went on reading a run after another one had been cut. */
  resumed: number;
  /** Runs of each agent with a limit that were answered. */
  readonly limited: Map<string, number>;
  /** What each agent with a limit of tokens and cost has used for runs that were answered. */
  readonly spent: Map<string, Use>;
  /** By agent and day: the most that a counter has shown while the load was on. */
  readonly shown: Map<string, Use>;
  /** Counters that showed less than before. */
  readonly shrunk: Set<string>;
  /** Agents whose limit somebody was refused by. */
  readonly usedUp: Set<string>;
  /** By what was answered in their place: a status with its code, or `gone`. */
  readonly refusals: Map<string, number>;
}

export const emptyHistory = (): History => ({
  streams: new Map(),
  answers: new Map(),
  queued: new Set(),
  turns: new Map(),
  orders: new Set(),
  untold: new Map(),
  resumed: 0,
  limited: new Map(),
  spent: new Map(),
  shown: new Map(),
  shrunk: new Set(),
  usedUp: new Set(),
  refusals: new Map(),
});

export interface Load {
  readonly url: string;
  readonly history: History;
  /** True once no new request is to be made. */
  readonly isOver: () => boolean;
  readonly random: () => number;
  /** Agents with a limit: the next one is asked when one is used up. */
  readonly limitedAgents: readonly string[];
  /** The same, with a limit of tokens and of cost. */
  readonly pricedAgents: readonly string[];
}

const refuse = ({ history: { refusals } }: Load, what: string): void => {
  refusals.set(what, (refusals.get(what) ?? 0) + 1);
};

const refusalOf = (status: number, text: string): string => {
  try {
    return `${status} ${(JSON.parse(text) as { code?: string }).code ?? ''}`.trim();
  } catch {
    return String(status);
  }
};

/** A text: it was refused, or nobody answered, which is counted. */
const asked = async (load: Load, agent: string, body: object, headers: Record<string, string> = {}) => {
  const answer = await call(`${load.url}/api/agents/${agent}/run`, { body, headers }).catch(() => null);
  if (answer !== null && answer.status < 300) return answer;
  const refusal = answer === null ? 'gone' : refusalOf(answer.status, answer.text);
  refuse(load, refusal);
  return refusal;
};

// Longer than a run of a dead process takes to be closed.
const resumeWithinMs = 180_000;

/** Goes on after the last event, at whichever process, until the run has ended. */
const resume = async (load: Load, runId: string, frames: SseFrame[]): Promise<void> => {
  const giveUpAt = performance.now() + resumeWithinMs;
  let answer = 'a stream without an end';
  while (!terminal.test(frames.at(-1)?.event ?? '')) {
    if (performance.now() > giveUpAt) return void load.history.untold.set(runId, answer);
    const last = frames.findLast(({ id }) => id !== null)?.id;
    const headers = last === undefined || last === null ? {} : { 'last-event-id': String(last) };
    const stream = await openStream(`${load.url}/api/runs/${runId}/events`, { headers }).catch((error: Error) => error);
    if (stream instanceof Error) {
      answer = stream.message;
      await pause(200);
      continue;
    }
    load.history.resumed += 1;
    await inTime(`the end of the stream of run ${runId}`, stream.ended, resumeWithinMs).finally(stream.leave);
    frames.push(...stream.frames);
  }
};

/** Talks in streams, each read to the end of its run over as many connections as it takes. */
const talks = async (load: Load): Promise<void> => {
  const stream = await openStream(`${load.url}/api/agents/talker/run`, { body: { message: 'talk' } }).catch(
    (error: Error) => error,
  );
  if (stream instanceof Error) return refuse(load, /^\d+/.exec(stream.message)?.[0] ?? 'gone');
  await inTime(`the end of the stream of run ${stream.runId}`, stream.ended, resumeWithinMs).finally(stream.leave);
  const frames = [...stream.frames];
  load.history.streams.set(stream.runId, frames);
  await resume(load, stream.runId, frames);
};

const asks = async (load: Load): Promise<void> => {
  const answer = await asked(load, 'talker', { message: 'ask', stream: false });
  if (typeof answer !== 'string') load.history.answers.set(String(answer.headers['x-run-id']), answer.text);
};

const queues = async (load: Load): Promise<void> => {
  const order = `q${load.history.orders.size}x${Math.trunc(load.random() * 1e9)}`;
  load.history.orders.add(order);
  const answer = await asked(load, 'shop', { message: `order ${order}` }, { prefer: 'respond-async' });
  if (typeof answer !== 'string') load.history.queued.add(answer.json<{ runId: string }>().runId);
};

const orders = async (load: Load): Promise<void> => {
  const order = `d${load.history.orders.size}x${Math.trunc(load.random() * 1e9)}`;
  load.history.orders.add(order);
  await asked(load, 'shop', { message: `order ${order}`, stream: false });
};

/** Asks an agent whose limit is not used up, as far as anybody was told. */
const askBounded = async (load: Load, agents: readonly string[]) => {
  const { usedUp } = load.history;
  const agent = agents.find((name) => !usedUp.has(name)) ?? agents.at(-1) ?? '';
  const answer = await asked(load, agent, { message: 'ask', stream: false });
  if (answer === '429 quota-exceeded') usedUp.add(agent);
  return { agent, answer };
};

const limited = async (load: Load): Promise<void> => {
  const { agent, answer } = await askBounded(load, load.limitedAgents);
  const { limited } = load.history;
  if (typeof answer !== 'string') limited.set(agent, (limited.get(agent) ?? 0) + 1);
};

const spends = async (load: Load): Promise<void> => {
  const { agent, answer } = await askBounded(load, load.pricedAgents);
  if (typeof answer === 'string') return;
  const { usage, cost } = answer.json<{ usage: { totalTokens: number }; cost: { totalCost: number } }>();
  const { spent } = load.history;
  const before = spent.get(agent) ?? { runs: 0, tokens: 0, cost: 0 };
  spent.set(agent, {
    runs: before.runs + 1,
    tokens: before.tokens + usage.totalTokens,
    cost: before.cost + microUnits(cost.totalCost),
  });
};

/** Looks at the counters again and again, at whichever process. */
const watches = async (load: Load): Promise<void> => {
  const answer = await call(`${load.url}/api/quotas/usage?period=Daily`).catch(() => null);
  if (answer?.status !== 200) return refuse(load, answer === null ? 'gone' : refusalOf(answer.status, answer.text));
  const { shown, shrunk } = load.history;
  const { usage } = answer.json<{ usage: readonly (Use & { agentName: string; periodStart: string })[] }>();
  for (const { agentName, periodStart, runs, tokens, cost } of usage) {
    const counter = `${agentName} ${periodStart}`;
    const before = shown.get(counter) ?? { runs: 0, tokens: 0, cost: 0 };
    const now = { runs, tokens, cost: microUnits(cost) };
    if (now.runs < before.runs || now.tokens < before.tokens || now.cost < before.cost) shrunk.add(counter);
    shown.set(counter, {
      runs: Math.max(now.runs, before.runs),
      tokens: Math.max(now.tokens, before.tokens),
      cost: Math.max(now.cost, before.cost),
    });
  }
};

/** One turn of a session that others talk in, too. */
const turnIn =
  (session: string) =>
  async (load: Load): Promise<void> => {
    const tag = `t${Math.trunc(load.random() * 1e12)}`;
    const body = { message: `turn ${tag}`, stream: false, sessionId: session, concurrency: 'Enqueue' };
    if (typeof (await asked(load, 'talker', body)) === 'string') return;
    const turns = load.history.turns.get(session) ?? [];
    load.history.turns.set(session, [...turns, tag]);
  };

/** Clients, each doing its own thing again and again. */
const clients: readonly ((load: Load) => Promise<void>)[] = [
  ...Array.from({ length: 6 }, () => talks),
  ...Array.from({ length: 6 }, () => asks),
  ...Array.from({ length: 3 }, () => queues),
  ...Array.from({ length: 3 }, () => orders),
  ...Array.from({ length: 3 }, () => limited),
  ...Array.from({ length: 3 }, () => spends),
  watches,
  ...['alone-1', 'alone-2', 'shared', 'shared', 'shared'].map(turnIn),
];

/** Resolves when every client has seen that the load is over, with what each was doing then done. */
export const applyLoad = async (load: Load): Promise<void> => {
  const able = clients.filter((client) => client !== spends || load.pricedAgents.length > 0);
  await Promise.all(
    able.map(async (client) => {
      while (!load.isOver()) await client(load);
    }),
  );
};
