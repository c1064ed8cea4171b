import { AcpError } from '../../../contract/errors.ts';
import type { AgentRunRequest } from '../../../contract/run-request.ts';
import type { TraceParent } from '../../../core/telemetry/trace-context.ts';
import type { RunRow } from '../../../db/tables.ts';
import type { RunPlan } from '../../../engine/active-run.ts';
import {
  type AgentSource,
  type CompiledAgent,
  CompileError,
  compileFailure,
  readSavedAt,
} from '../../../engine/compiled-agent.ts';
import type { AttachmentReference } from '../../../engine/context/index.ts';
import { RunFailure } from '../../../engine/run-failure.ts';
import type { RunAttachmentPort } from '../../attachments/index.ts';
import type { LaunchRequest } from './launch-request.ts';
import type { Preflight } from './preflight.ts';
import type { QueuedRunPayload } from './queued-run.ts';

/*
 * A run that was accepted before meets its agent and its attachments as they are by now. Each of these throws the
 * failure that the run ends with where they have changed too much.
 */

/** The agent as it is now, or as a run had it that goes on. `trace` is what the compile belongs to. */
export const currentAgent = async (
  agents: AgentSource,
  tenantId: string,
  name: string,
  resumes: QueuedRunPayload['resumes'] | null = null,
  trace: TraceParent | null = null,
): Promise<CompiledAgent> => {
  try {
    return await (resumes === null
      ? agents.compile(tenantId, name, trace)
      : agents.compileVersion(tenantId, name, resumes.agentVersion, resumes.agentSavedAt));
  } catch (error) {
    if (error instanceof CompileError) throw compileFailure(error);
    if (error instanceof AcpError && error.code === 'agent-not-found')
      throw new RunFailure('CompilationFailed', 'agent_not_found', `Agent "${name}" does not exist any more.`);
    throw error;
  }
};

/**
 * What was begun is gone on with in the agent as it is now, repaired perhaps, but in no other one that has its name by now.
 * `begun` is the row of the run whose steps there are.
 */
export const assertSameAgent = async (
  agents: Pick<AgentSource, 'compileVersion'>,
  agent: CompiledAgent,
  { tenant_id: tenantId, agent_version: version, agent_saved_at: stored }: RunRow,
): Promise<void> => {
  const savedAt = readSavedAt(stored);
  // In line, or begun by an earlier version of the service.
  if (version === null || savedAt === undefined) return;
  if (agent.version === version && agent.savedAt === savedAt) return;
  try {
    await agents.compileVersion(tenantId, agent.name, version, savedAt);
  } catch (error) {
    if (error instanceof AcpError && error.code === 'agent-not-found')
      throw new RunFailure('CompilationFailed', 'agent_not_found', `Agent "${agent.name}" is another one by now.`);
    // It was to be repaired: what does not compile any more is there.
    if (!(error instanceof CompileError)) throw error;
  }
};

/** The parameters of the request for the agent as it is now. */
export const currentParameters = (agent: CompiledAgent, { parameters }: AgentRunRequest): RunPlan['parameters'] => {
  try {
    return agent.resolveParameters(parameters ?? null);
  } catch (error) {
    if (!(error instanceof AcpError)) throw error;
    throw new RunFailure('CompilationFailed', 'compilation_failed', error.message, { cause: error });
  }
};

/** What the request names, as far as it was not deleted since. */
export const currentAttachments = async (
  attachments: Pick<RunAttachmentPort, 'stillThere'>,
  tenantId: string,
  { attachmentIds, sessionId }: AgentRunRequest,
): Promise<readonly AttachmentReference[]> => {
  try {
    return await attachments.stillThere(tenantId, attachmentIds ?? [], sessionId ?? null);
  } catch (error) {
    if (!(error instanceof AcpError) || error.code !== 'attachment-not-found') throw error;
    throw new RunFailure('Infrastructure', 'attachment_not_found', error.message, { cause: error });
  }
};

/** The preflight once more: agent and history may have grown. */
export const checkPrompt = async (
  preflight: Preflight | null,
  agent: CompiledAgent,
  tenantId: string,
  request: AgentRunRequest,
  attachments: readonly AttachmentReference[],
): Promise<void> => {
  await preflight?.(agent, tenantId, request, attachments).catch((error: unknown) => {
    if (!(error instanceof AcpError) || error.code === 'store-unavailable') throw error;
    throw new RunFailure('ProviderError', 'context_overflow', error.message, { cause: error });
  });
};

/** Agent and parameters of a request that has waited for its session. */
export const currentRequest = async (
  deps: { readonly agents: AgentSource; readonly preflight: Preflight | null },
  { context: { tenantId, trace }, agentName, body }: LaunchRequest,
  attachments: readonly AttachmentReference[],
): Promise<Pick<RunPlan, 'agent' | 'parameters'>> => {
  const agent = await currentAgent(deps.agents, tenantId, agentName, null, trace);
  const parameters = currentParameters(agent, body);
  await checkPrompt(deps.preflight, agent, tenantId, body, attachments);
  return { agent, parameters };
};
