import { type Attribution, credentialAttribution } from '../../../core/caller/attribution.ts';
import { type CompiledAgent, CompileError } from '../../../engine/compiled-agent.ts';
import type { TurnResume } from '../../../engine/context/index.ts';
import type { RunAttachmentPort } from '../../attachments/index.ts';
import type { SessionPlaces } from '../../sessions/index.ts';
import type { LaunchRequest, RunOwner, RunWork } from './launch-request.ts';
import type { Preflight } from './preflight.ts';

export interface RequestedWorkDeps {
  readonly attachments: Pick<RunAttachmentPort, 'named'>;
  readonly attribution: Attribution;
  readonly sessions: Pick<SessionPlaces, 'check'>;
  /** Null: switched off. */
  readonly preflight: Preflight | null;
}

const emptyTurn: TurnResume = { messages: [], calls: [], earlier: null };

/**
 * What the body of a request has its run do, checked in the order of the first refusal. `refuse` is called for an agent
 * that does not compile once everything else that could refuse the request has let it pass.
 */
export const requestedWork = async (
  deps: RequestedWorkDeps,
  request: LaunchRequest,
  runId: string,
  ownerId: string | null,
  compiled: CompiledAgent | CompileError,
  refuse: (request: LaunchRequest, runId: string, owner: RunOwner, error: CompileError) => Promise<never>,
): Promise<{ readonly work: RunWork; readonly owner: RunOwner }> => {
  const { kind, context, agentName, body } = request;
  const { tenantId, principal } = context;
  const parameters = compiled instanceof CompileError ? {} : compiled.resolveParameters(body.parameters ?? null);
  const sessionId = body.sessionId ?? null;
  const ids = body.attachmentIds ?? [];
  const attachments = ids.length === 0 ? [] : await deps.attachments.named(context, ids, sessionId);
  const asked =
    request.arriving?.attribution ??
    (kind === 'answers' ? credentialAttribution(principal) : deps.attribution.of(context, { agentName, sessionId }));
  const { userId, labels } = asked instanceof Promise ? await asked : asked;
  const { exposed } = request;
  const owner = { userId, labels: exposed === undefined ? labels : { ...labels, ...exposed.labels }, ownerId };
  if (sessionId !== null) await deps.sessions.check(context, sessionId, body);
  if (compiled instanceof CompileError) return refuse(request, runId, owner, compiled);
  // The texts of a batch are read one by one, and each may be as long as the window.
  if (deps.preflight !== null && compiled.model.vectors === undefined)
    await deps.preflight(compiled, tenantId, body, attachments, request.given);
  const work: RunWork = {
    agent: compiled,
    message: body.message ?? null,
    documents: body.documents ?? [],
    attachments,
    culture: body.culture ?? null,
    parameters,
    // The last thing that was said stands in what its caller gave.
    ...(request.outside !== undefined && (body.message ?? null) === null ? { resume: emptyTurn } : {}),
  };
  return { work, owner };
};
