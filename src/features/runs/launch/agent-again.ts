import { AcpError } from '../../../contract/errors.ts';
import type { AgentRunRequest } from '../../../contract/run-request.ts';
import type { TraceParent } from '../../../core/telemetry/trace-context.ts';
import type { RunPlan } from '../../../engine/active-run.ts';
import { type AgentSource, type CompiledAgent, CompileError, compileFailure } from '../../../engine/compiled-agent.ts';
import type { AttachmentReference } from '../../../engine/context/index.ts';
import { RunFailure } from '../../../engine/run-failure.ts';
import type { Preflight } from './preflight.ts';

/**
 * The agent of a run that was accepted before, as it is now or in the version that is given; else why the run fails.
 * `trace` is what the compile belongs to.
 */
export const agentAgain = async (
  agents: AgentSource,
  tenantId: string,
  name: string,
  version?: number,
  trace: TraceParent | null = null,
): Promise<CompiledAgent | RunFailure> => {
  try {
    return await (version === undefined
      ? agents.compile(tenantId, name, trace)
      : agents.compileVersion(tenantId, name, version));
  } catch (error) {
    if (error instanceof CompileError) return compileFailure(error);
    if (error instanceof AcpError && error.code === 'agent-not-found')
      return new RunFailure('CompilationFailed', 'agent_not_found', `Agent "${name}" does not exist any more.`);
    throw error;
  }
};

/** The parameters of the request for the agent as it is now. */
export const parametersAgain = (
  agent: CompiledAgent,
  { parameters }: AgentRunRequest,
): RunPlan['parameters'] | RunFailure => {
  try {
    return agent.resolveParameters(parameters ?? null);
  } catch (error) {
    if (!(error instanceof AcpError)) throw error;
    return new RunFailure('CompilationFailed', 'compilation_failed', error.message, { cause: error });
  }
};

/** Throws the failure of a run whose prompt has become too long since it was accepted. */
export const promptAgain = async (
  preflight: Preflight | null,
  agent: CompiledAgent,
  tenantId: string,
  request: AgentRunRequest,
  attachments: readonly AttachmentReference[],
): Promise<void> => {
  await preflight?.(agent, tenantId, request, attachments).catch((error: unknown) => {
    if (!(error instanceof AcpError)) throw error;
    throw new RunFailure('ProviderError', 'context_overflow', error.message, { cause: error });
  });
};
