import { AcpError } from '../../contract/errors.ts';
import type { AgentRunRequest } from '../../contract/run-request.ts';
import type { CompiledAgent } from '../../engine/compiled-agent.ts';
import { estimatePrompt } from '../agents/index.ts';

/** Throws `context-window-exceeded` for a prompt that is too long. */
export type Preflight = (agent: CompiledAgent, tenantId: string, body: AgentRunRequest) => Promise<void>;

type History = (tenantId: string, sessionId: string) => Promise<readonly string[]>;

/** Refuses a prompt that would not fit the model's window; a window that is not known refuses nothing. */
export const preflightCheck =
  (reserveRatio: number, history: History): Preflight =>
  async (agent, tenantId, body) => {
    const sessionId = body.sessionId ?? null;
    const estimate = await estimatePrompt(
      {
        agent,
        culture: body.culture ?? null,
        parameters: agent.resolveParameters(body.parameters ?? null),
        message: body.message ?? null,
        documents: body.documents ?? [],
        history: sessionId === null ? [] : await history(tenantId, sessionId),
      },
      reserveRatio,
    );
    if (!estimate.wouldBeRejected || estimate.allowedPromptTokens === null) return;
    throw new AcpError(
      'context-window-exceeded',
      `The prompt has about ${estimate.promptTokens} tokens; ${estimate.allowedPromptTokens} are allowed.`,
      { details: { estimatedTokens: estimate.promptTokens, allowedTokens: estimate.allowedPromptTokens } },
    );
  };
