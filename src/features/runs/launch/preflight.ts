import { AcpError } from '../../../contract/errors.ts';
import type { AgentRunRequest } from '../../../contract/run-request.ts';
import type { CompiledAgent } from '../../../engine/compiled-agent.ts';
import { type AttachmentReference, attachmentsIn, type GivenContext } from '../../../engine/context/index.ts';
import { estimatePrompt, type PromptHistory } from '../../agents/index.ts';
import type { RunAttachmentPort } from '../../attachments/index.ts';

/** Throws `context-window-exceeded` for a prompt that is too long. */
export type Preflight = (
  agent: CompiledAgent,
  tenantId: string,
  body: AgentRunRequest,
  attachments: readonly AttachmentReference[],
  given?: GivenContext | null,
) => Promise<void>;

/** Refuses a prompt that would not fit the model's window; a window that is not known refuses nothing. */
export const preflightCheck =
  (reserveRatio: number, history: PromptHistory, attachments: Pick<RunAttachmentPort, 'measure'>): Preflight =>
  async (agent, tenantId, body, named, given = null) => {
    const sessionId = body.sessionId ?? null;
    const said = sessionId === null ? [] : await history(tenantId, sessionId);
    const files = await attachments.measure(tenantId, [
      ...attachmentsIn([...said, ...(given?.history ?? [])]),
      ...named,
    ]);
    const estimate = await estimatePrompt(
      {
        agent,
        culture: body.culture ?? null,
        parameters: agent.resolveParameters(body.parameters ?? null),
        message: body.message ?? null,
        documents: [...(body.documents ?? []), ...files.texts],
        otherAttachments: files.others,
        history: said,
        given,
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
