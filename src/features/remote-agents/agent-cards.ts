import { createHash } from 'node:crypto';
import { isRecord } from '../../contract/record.ts';
import type { Json } from '../../contract/schema.ts';
import { canonicalJson } from '../../core/documents/canonical-json.ts';
import { ForeignJsonError, parseForeignJson } from '../../core/documents/foreign-json.ts';
import type { Logger } from '../../core/logger.ts';
import type { RemoteAgentPinRow } from '../../db/tables/remote-agents.ts';
import type { ToolEffect } from '../../engine/tools/index.ts';
import { type AgentCard, readAgentCard } from '../../providers/a2a/agent-card.ts';
import { checkUrlTarget } from '../../providers/http/egress.ts';
import type { OutboundHttp } from '../../providers/http/outbound.ts';
import { OutboundError } from '../../providers/http/outbound-error.ts';
import { failureNumber, failureType, McpFailure } from '../../providers/mcp/mcp-failure.ts';
import { visibleText } from '../../providers/mcp/visible-text.ts';
import { isSafeForCredentials } from '../mcp-servers/index.ts';
import type { CardState } from './remote-agents.schema.ts';
import type { RemoteAgentTelemetry } from './remote-telemetry.ts';

/** A remote agent as `Host:RemoteAgents` or the definition of an agent has it. */
export interface ConfiguredAgent {
  /** What agents here call it by. */
  readonly name: string;
  /** The name, or `{agent}:{name}` of one that a definition has. */
  readonly id: string;
  /** The agent whose definition has it; null: the host has. */
  readonly definedBy: string | null;
  /** Whose key its credential has to be. */
  readonly tenantId: string;
  /** What its card is approved as. Another address, or another key, is another one. */
  readonly pinId: string;
  readonly cardUrl: string;
  readonly description: string | null;
  readonly authorizationKey: string | null;
  readonly requiresApproval: boolean;
  readonly effect: ToolEffect;
  readonly pinning: 'Off' | 'Warn' | 'Block';
  readonly timeoutMs: number;
}

export interface FoundCard {
  readonly card: AgentCard;
  /** Canonical JSON of all that the card says but its signatures. */
  readonly text: string;
  readonly hash: string;
}

/** What the last look at a card came to. */
export interface CardLook {
  readonly at: number;
  readonly state: Exclude<CardState, 'Unknown'>;
  readonly found: FoundCard | null;
  /** Why there is none, for people; nothing of it was said by the other side. */
  readonly problem: string | null;
  /** The same for the model that asked. */
  readonly failure: string | null;
}

export interface AgentCardDeps {
  readonly http: Pick<OutboundHttp, 'request'>;
  /** The value of a configuration key that the tenant may name; null: it has none now. */
  readonly secret: (tenantId: string, key: string) => string | null;
  readonly allowPrivate: boolean;
  readonly timeoutMs: number;
  readonly telemetry: RemoteAgentTelemetry;
  readonly now: () => number;
  readonly log: Pick<Logger, 'warn'>;
}

const maxCardBytes = 262_144;
// As long as the official servers let a card be kept.
const freshMs = 300_000;
// Definitions come and go; what was looked at first is forgotten first.
const maxLooks = 1000;

const lookKey = ({ tenantId, pinId }: ConfiguredAgent): string => JSON.stringify([tenantId, pinId]);

/** Why an agent cannot be called, for people, and as `failure` for the model that asked. */
export class CardProblem extends Error {
  readonly state: CardLook['state'];
  readonly failure: string;

  constructor(state: CardLook['state'], problem: string, failure: string, options?: ErrorOptions) {
    super(problem, options);
    this.name = 'CardProblem';
    this.state = state;
    this.failure = failure;
  }
}

/** What may be said of a failure beyond this process: whose it is, and a number. */
export const failureText = (name: string, failure: McpFailure): string => {
  const number = failureNumber(failure);
  if (number !== null) return `Tool failed: ${name} answered ${number}`;
  return failure.kind === 'broken'
    ? `Tool failed: ${name} gave no valid answer`
    : `Tool failed: ${name} did not answer`;
};

const notAvailable = (name: string): string => `Tool failed: ${name} is not available`;

const problemOf = (name: string, error: unknown): CardProblem => {
  if (error instanceof CardProblem) return error;
  if (!(error instanceof OutboundError)) throw error;
  if (error.code === 'target-not-allowed')
    return new CardProblem('Refused', 'The address of its card is not allowed.', notAvailable(name), { cause: error });
  const words: Partial<Record<OutboundError['code'], string>> = {
    'timed-out': 'It did not answer in time.',
    'response-too-large': `What it answers is larger than ${maxCardBytes} bytes.`,
    unresolved: 'The name of its host has no address.',
  };
  const failure = new McpFailure('no-answer', { cause: error });
  return new CardProblem('Unreachable', words[error.code] ?? 'It did not answer.', failureText(name, failure), {
    cause: error,
  });
};

const noCard = (name: string, why: string): CardProblem =>
  new CardProblem('Unreachable', `What it answers is no card: ${why}.`, failureText(name, new McpFailure('broken')));

const parsed = (name: string, bytes: Uint8Array): Readonly<Record<string, unknown>> => {
  let value: unknown;
  try {
    value = parseForeignJson(bytes);
  } catch (error) {
    // Only its own words say what there is too much of; those of the parser hold what was sent.
    throw noCard(name, error instanceof ForeignJsonError ? 'it is nested too deep or holds too much' : 'it is no JSON');
  }
  if (!isRecord(value)) throw noCard(name, 'it is no JSON object');
  return value;
};

/** Cards of remote agents, in the memory of this process: asked for when they are needed, and kept for a while. */
export const createAgentCards = (deps: AgentCardDeps) => {
  const { allowPrivate } = deps;
  const looks = new Map<string, CardLook>();
  const underWay = new Map<string, Promise<CardLook>>();

  const credentialOf = ({ name, tenantId, cardUrl, authorizationKey: key }: ConfiguredAgent): string | null => {
    if (key === null) return null;
    const value = deps.secret(tenantId, key);
    if (value === null)
      throw new CardProblem(
        'MissingCredential',
        `The configuration key ${key} has no value.`,
        `Tool failed: the credential of ${name} has no value`,
      );
    if (!isSafeForCredentials(new URL(cardUrl), allowPrivate))
      throw new CardProblem('Refused', 'A credential is sent over https alone.', notAvailable(name));
    return value;
  };

  const fetched = async (agent: ConfiguredAgent): Promise<FoundCard> => {
    const { name, cardUrl } = agent;
    const authorization = credentialOf(agent);
    const { status, body } = await deps.http.request({
      method: 'GET',
      url: new URL(cardUrl),
      headers: { accept: 'application/json', ...(authorization === null ? {} : { authorization }) },
      timeoutMs: deps.timeoutMs,
      maxBodyBytes: maxCardBytes,
      readErrorBody: false,
    });
    if (status !== 200)
      throw new CardProblem(
        'Unreachable',
        `It answered with HTTP ${status}.`,
        failureText(name, new McpFailure('http', { status })),
      );
    const { signatures: _signatures, ...said } = parsed(name, body);
    const card = readAgentCard(said);
    if ('problem' in card) throw noCard(name, card.problem);
    if (!allowPrivate && checkUrlTarget(card.url) === 'private')
      throw new CardProblem('Refused', 'Its card names an address that is not allowed.', notAvailable(name));
    if (authorization !== null && !isSafeForCredentials(card.url, allowPrivate))
      throw new CardProblem('Refused', 'Its card names an address without https.', notAvailable(name));
    const text = canonicalJson(said as Json);
    return { card, text, hash: createHash('sha256').update(text).digest('hex') };
  };

  const look = async (agent: ConfiguredAgent): Promise<CardLook> => {
    const { name, id } = agent;
    const key = lookKey(agent);
    const startedAt = performance.now();
    const before = looks.get(key)?.found?.hash;
    let result: CardLook;
    let errorType: string | null = null;
    try {
      const found = await fetched(agent);
      result = { at: deps.now(), state: 'Connected', found, problem: null, failure: null };
      if (before !== undefined && before !== found.hash) {
        deps.telemetry.drifted(name);
        deps.log.warn({ remoteAgent: id, hash: found.hash }, 'The card of a remote agent has changed');
      }
    } catch (error) {
      const problem = problemOf(name, error);
      const { state, failure, message } = problem;
      errorType = problem.cause instanceof OutboundError ? problem.cause.code : state;
      deps.log.warn(
        { remoteAgent: id, state, err: problem.cause },
        `The card of a remote agent cannot be used: ${message}`,
      );
      result = { at: deps.now(), state, found: null, problem: message, failure };
    }
    deps.telemetry.requested(name, 'card', (performance.now() - startedAt) / 1000, errorType);
    looks.delete(key);
    const oldest = looks.keys().next();
    if (looks.size >= maxLooks && oldest.done !== true) looks.delete(oldest.value);
    looks.set(key, result);
    return result;
  };

  const lookNow = (agent: ConfiguredAgent): Promise<CardLook> => {
    const key = lookKey(agent);
    const begun = underWay.get(key);
    if (begun !== undefined) return begun;
    const work = look(agent).finally(() => underWay.delete(key));
    underWay.set(key, work);
    return work;
  };

  return {
    /** Asks for the card, whatever is known of it. */
    look: lookNow,
    /** As it was a short while ago, or as it is now; one that could not be used is asked for again. */
    async current(agent: ConfiguredAgent): Promise<CardLook> {
      const last = looks.get(lookKey(agent));
      const isFresh = last?.state === 'Connected' && deps.now() - last.at < freshMs;
      return isFresh ? last : lookNow(agent);
    },
    /** The credential of an agent whose card was found with it. */
    credentialOf,
  };
};

export type AgentCards = ReturnType<typeof createAgentCards>;

/** For `error.type` of spans and metrics. */
export const errorTypeOf = (error: unknown): string | null => {
  if (error === null) return null;
  return error instanceof McpFailure ? failureType(error) : 'internal';
};

/** What holds back the credential of an agent that a definition names; null: nothing, or there is none. */
export const heldBack = (
  { name, definedBy, authorizationKey }: ConfiguredAgent,
  pin: RemoteAgentPinRow | undefined,
): CardProblem | null =>
  definedBy === null || authorizationKey === null || pin !== undefined
    ? null
    : new CardProblem(
        'Refused',
        'Its credential is sent once somebody has approved its card.',
        `Tool failed: nobody has approved ${name}`,
      );

/** What another system calls something, for people. */
export const shownName = (text: string | null): string | null => (text === null ? null : visibleText(text));
