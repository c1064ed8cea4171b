import { AcpError } from '../../contract/errors.ts';
import { ok } from '../../contract/operation.ts';
import type { CallContext, Handlers, Principal, UnreadCall } from '../../core/context.ts';
import type { Logger } from '../../core/logger.ts';
import type { Span } from '../../core/telemetry/span.ts';
import { ConditionFailedError } from '../../db/statement.ts';
import type { TriggerRow } from '../../db/tables/arriving-work.ts';
import type { ArrivingWork, Launch } from '../runs/index.ts';
import { schemeOf, type TriggerCaller, unauthenticated } from './trigger-caller.ts';
import type { TriggerTelemetry } from './trigger-telemetry.ts';
import type { createTriggerWindows } from './trigger-window.ts';
import type { triggerOperations } from './triggers.operations.ts';
import { bodyText, callIdOf, flowOfCall, keptMs, messageIn, slackChallenge, textOfCall } from './triggers.rules.ts';
import type { TriggerStore } from './triggers.store.ts';

export interface TriggerCallDeps {
  readonly store: Pick<TriggerStore, 'isReserved' | 'acceptance'>;
  readonly callerOf: TriggerCaller;
  readonly windows: ReturnType<typeof createTriggerWindows>;
  readonly launch: Pick<Launch, 'enter' | 'queue'>;
  readonly agentExists: (tenantId: string, name: string) => Promise<boolean>;
  readonly lifecycle: { readonly draining: boolean };
  readonly telemetry: TriggerTelemetry;
  readonly log: Pick<Logger, 'warn'>;
  readonly prefix: string;
  readonly settings: {
    readonly maxBodyBytes: number;
    readonly toleranceMs: number;
    /** False: what a call is refused for is told to nobody, as far as it lies in the call. */
    readonly explains: boolean;
    /** False: nothing can be queued. */
    readonly queues: boolean;
    readonly records: boolean;
  };
  /** Epoch milliseconds that processes agree on. */
  readonly now: () => number;
  readonly newId: () => string;
}

type Accept = Handlers<typeof triggerOperations>['accept'];
type AcceptInput = Parameters<Accept>[1];
type AcceptReply = Awaited<ReturnType<Accept>>;

// Another process follows one that drains.
const drainingRetryMs = 5000;

/** Who a run is started by that nobody asks for: it has no permission that a tool could need, and no identity. */
const principalOf = ({ name }: TriggerRow): Principal => ({
  kind: 'Host',
  role: 'Operator',
  scopes: null,
  actor: `trigger:${name}`,
  userId: null,
  apiKey: null,
  permissions: new Set(),
  unattended: true,
});

/** Refusals for what lies in the call itself: its size, its content, its id. */
const refusalsOfCalls: ReadonlySet<string> = new Set(['body-too-large', 'trigger-payload-invalid', 'trigger-replayed']);

const replayed = (): AcpError => new AcpError('trigger-replayed', 'A call with this id was accepted before.');
const targetMissing = ({ target_name }: TriggerRow): AcpError =>
  new AcpError('trigger-target-missing', `Agent "${target_name}" does not exist any more.`);

/**
 * Calls of triggers, checked in an order that each caller can rely on.
 * Design: docs/design/triggers-and-webhooks.md.
 */
export const createTriggerCalls = (deps: TriggerCallDeps): Accept => {
  const { store, settings, launch, telemetry, now } = deps;
  /** Calls that are being accepted here, by their id: the others with the same one wait for their end. True: accepted. */
  const underway = new Map<string, Promise<boolean>>();

  const bodyOf = async ({ readBody }: UnreadCall): Promise<Uint8Array> => {
    try {
      return await readBody(settings.maxBodyBytes);
    } catch (error) {
      if (!(error instanceof AcpError) || error.code !== 'payload-too-large') throw error;
      throw new AcpError('body-too-large', `The body is larger than ${settings.maxBodyBytes} bytes.`);
    }
  };

  const assertRunsQueue = (): void => {
    if (!settings.queues) throw new AcpError('async-runs-disabled', 'Queued runs are switched off on this service.');
    if (!settings.records)
      throw new AcpError('run-recording-disabled', 'Queued runs need run recording, which is switched off.');
  };

  const queued = async (
    context: CallContext,
    span: Span | null,
    row: TriggerRow,
    message: string,
    callId: string,
    flow: ArrivingWork['flow'],
  ): Promise<string> => {
    const { tenant_id: tenantId, name, target_name: agentName } = row;
    const call = { tenant_id: tenantId, trigger_name: name, call_id: callId };
    const sessionId = deps.newId();
    const started = {
      ...context,
      tenantId,
      principal: principalOf(row),
      trace: span ?? context.trace ?? null,
      rawBody: null,
      readBody: undefined,
    };
    const acceptedAt = now();
    const keptUntil = acceptedAt + keptMs(schemeOf(row), settings.toleranceMs);
    try {
      const entrance = await launch.enter({
        kind: 'queued',
        context: started,
        agentName,
        body: { message, sessionId },
        isStreaming: false,
        target: { sessionId },
        work: null,
        arriving: {
          flow,
          attribution: { userId: null, labels: { source: 'trigger', trigger: name } },
          stored: (runId) => store.acceptance({ ...call, run_id: runId, kept_until: keptUntil }, acceptedAt),
        },
      });
      return await launch.queue(entrance);
    } catch (error) {
      if (error instanceof AcpError && error.code === 'agent-not-found') throw targetMissing(row);
      // Another process was faster with the same id.
      const isLost = error instanceof AcpError && error.cause instanceof ConditionFailedError;
      if (isLost && (await store.isReserved(call, now()))) throw replayed();
      throw error;
    }
  };

  /** One of several calls with the same id; the others hear of it, or take their turn where it did not come to a run. */
  const once = async (row: TriggerRow, callId: string, start: () => Promise<string>): Promise<string> => {
    const call = { tenant_id: row.tenant_id, trigger_name: row.name, call_id: callId };
    const key = JSON.stringify([row.tenant_id, row.name, callId]);
    for (;;) {
      if (await store.isReserved(call, now())) throw replayed();
      const other = underway.get(key);
      if (other === undefined) break;
      // Of thousands that have waited nobody has to ask the store.
      if (await other) throw replayed();
    }
    const { promise, resolve } = Promise.withResolvers<boolean>();
    underway.set(key, promise);
    let isAccepted = false;
    try {
      const runId = await start();
      isAccepted = true;
      return runId;
    } finally {
      underway.delete(key);
      resolve(isAccepted);
    }
  };

  const accept = async (
    context: CallContext & UnreadCall,
    { params, headers }: AcceptInput,
    span: Span | null,
  ): Promise<AcceptReply> => {
    if (deps.lifecycle.draining)
      throw new AcpError('draining', 'The service is stopping and starts no more runs.', {
        details: { retryAfterMs: drainingRetryMs },
      });
    const body = await bodyOf(context);
    const row = await deps.callerOf({ requestId: context.requestId, ...params, headers, body });
    telemetry.authenticated(span, row.name);
    const waitMs = deps.windows.take(row.id);
    if (waitMs !== null)
      throw new AcpError('trigger-rate-limited', 'The trigger is called too often.', {
        details: { retryAfterMs: waitMs },
      });
    assertRunsQueue();
    const text = textOfCall(row, bodyText(body));
    const scheme = schemeOf(row);
    const challenge = slackChallenge(scheme, text);
    if (challenge !== null) return ok({ challenge });
    const message = messageIn(text, row);
    const callId = callIdOf(scheme, headers, text);
    if (!(await deps.agentExists(row.tenant_id, row.target_name))) throw targetMissing(row);
    const runId = await once(row, callId, () => queued(context, span, row, message, callId, flowOfCall(row, text)));
    const location = `${deps.prefix}/api/runs/${runId}`;
    return {
      status: 202,
      body: { runId, jobId: runId, location, eventsLocation: `${location}/events` },
      headers: { Location: location, 'X-Run-Id': runId },
    };
  };

  return async (context, input) => {
    const span = telemetry.begin(context.trace ?? null);
    try {
      const reply = await accept(context, input, span);
      telemetry.answered(span, reply.status);
      return reply;
    } catch (error) {
      const refusal = error instanceof AcpError ? error : null;
      telemetry.refused(span, refusal?.status ?? 500, refusal?.code ?? 'internal');
      if (refusal === null || settings.explains || !refusalsOfCalls.has(refusal.code)) throw error;
      const call = { ...input.params, requestId: context.requestId };
      throw unauthenticated(
        deps.log,
        call,
        refusal.code,
        'A call of a trigger was refused, and its caller not told why',
      );
    }
  };
};
