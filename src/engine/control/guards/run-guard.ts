import type { Principal } from '../../../core/context.ts';
import type { Span } from '../../../core/telemetry/span.ts';
import type { CompiledAgent } from '../../compiled-agent.ts';
import type { RunLog, RunTrace } from '../../record/index.ts';
import { RunFailure } from '../../run-failure.ts';
import type { GuardSource } from './content-guard.ts';
import type { ContentGuards, GuardFinding, GuardWatch, Inspected } from './guard-port.ts';

/** What guards read of a run, and the one thing that they write to it. */
export interface GuardedRun {
  readonly id: string;
  readonly plan: {
    readonly tenantId: string;
    readonly agent: Pick<CompiledAgent, 'name' | 'model' | 'tools'>;
    readonly sessionId: string | null;
    readonly userId: string | null;
    readonly principal: Pick<Principal, 'actor'>;
  };
  readonly log: Pick<RunLog, 'append'>;
  readonly trace: Pick<RunTrace, 'span' | 'tenantId' | 'modelCall' | 'open' | 'close'> | null;
  readonly signal: AbortSignal;
  /** Why a guard ended the run. */
  blocked: RunFailure | null;
}

/** What records have where a blocked text would be. */
export const blockedText = '[content_blocked]';

export interface TextPlace {
  readonly source: GuardSource;
  readonly toolName?: string;
  /** The server of a RemoteTool. */
  readonly toolSource?: string | null;
  readonly mediaType?: string;
  /** Of the model or tool call that the text belongs to; default: the run itself. */
  readonly span?: Span | null;
}

/** A block that a run has met and that its log does not have yet. */
export interface Block {
  readonly source: GuardSource;
  readonly finding: GuardFinding;
}

/** The guards where a text of this source is inspected; null: it passes as it is. */
export const guardsOf = (guards: ContentGuards | null, source: GuardSource): ContentGuards | null => {
  if (guards === null) return null;
  return (source === 'ModelOutput' ? guards.output : guards.input) ? guards : null;
};

/** A span for each decision; it never has the text. */
const watchOf = ({ trace }: GuardedRun, { source, span: above }: TextPlace): GuardWatch | null =>
  trace === null
    ? null
    : (guardName) => {
        const attributes = {
          'acp.tenant.id': trace.tenantId,
          'acp.guard.name': guardName,
          'acp.guard.source': source,
        };
        const span = trace.open('acp.guard', 'Internal', attributes, above ?? trace.span);
        return (decision) => {
          span.set({ 'acp.guard.decision': decision });
          trace.close(span);
        };
      };

export const inspectText = (
  run: GuardedRun,
  guards: ContentGuards,
  text: string,
  place: TextPlace,
  signal: AbortSignal | null = null,
): Promise<Inspected> => {
  const { plan } = run;
  const input = {
    text,
    source: place.source,
    tenantId: plan.tenantId,
    agentName: plan.agent.name,
    runId: run.id,
    sessionId: plan.sessionId,
    userId: plan.userId,
    toolName: place.toolName ?? null,
    toolSource: place.toolSource ?? null,
    mediaType: place.mediaType ?? null,
  };
  return guards.inspect(input, signal, watchOf(run, place));
};

/** One event for each guard and rule. */
export const tellMasks = (run: GuardedRun, source: GuardSource, masks: readonly GuardFinding[]): void => {
  for (const { guardName, ruleName } of masks) run.log.append('content.masked', { source, guardName, ruleName });
};

/** Writes the block to log and audit trail, once in a run, and gives the failure with which the run ends. */
export const blockRun = async (
  run: GuardedRun,
  guards: ContentGuards,
  { source, finding }: Block,
): Promise<RunFailure> => {
  // Calls side by side may each meet one; the first stands for the run.
  if (run.blocked !== null) return run.blocked;
  const { guardName, ruleName } = finding;
  run.blocked = new RunFailure('ContentBlocked', 'content_blocked', 'The content was blocked by a guard.', {
    guard: finding,
  });
  run.log.append('content.blocked', { source, guardName, ruleName });
  const { tenantId, principal } = run.plan;
  await guards.noteBlock({ tenantId, actor: principal.actor, entity: 'run', id: run.id, source, finding });
  return run.blocked;
};

/** The text as the guards leave it, told to the log. Throws RunFailure of class ContentBlocked. */
export const guardedText = async (
  run: GuardedRun,
  guards: ContentGuards | null,
  text: string,
  place: TextPlace,
): Promise<string> => {
  const active = guardsOf(guards, place.source);
  if (active === null || text === '') return text;
  const inspected = await inspectText(run, active, text, place);
  tellMasks(run, place.source, inspected.masks);
  if (inspected.block !== null) throw await blockRun(run, active, { source: place.source, finding: inspected.block });
  return inspected.text;
};
