import type { CompiledAgent } from '../../engine/compiled-agent.ts';
import {
  type ChatMessage,
  type GivenContext,
  messageTexts,
  previewCompaction,
  withGiven,
} from '../../engine/context/index.ts';
import { userMessage } from '../../engine/turn/index.ts';
import type { ContextWindowEstimate } from './agents.schema.ts';
import { estimateTokens } from './token-count.ts';

// What an image, PDF or audio file costs depends on the model; this is the usual order of magnitude.
const tokensPerFile = 1024;

/** What the first model call of a run carries. */
export interface PromptParts {
  readonly agent: CompiledAgent;
  readonly culture: string | null;
  /** As `CompiledAgent.resolveParameters` gives them. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly message: string | null;
  /** Documents of the request, and attachments that are text. */
  readonly documents: readonly { readonly name: string; readonly content: string }[];
  /** How many images, PDF and audio files there are. */
  readonly otherAttachments: number;
  readonly history: readonly ChatMessage[];
  /** Beside it, from the caller. */
  readonly given?: GivenContext | null;
}

/** The texts of a prompt in the order in which they are sent, the history as compaction leaves it. */
const promptTexts = async (parts: PromptParts): Promise<string[]> => {
  const { agent } = parts;
  const { given = null } = parts;
  const instructions = withGiven(agent.instructions(parts.culture, parts.parameters), given) ?? '';
  const input = userMessage({ id: '', message: parts.message, documents: parts.documents, attachments: [] }, '', 0);
  const messages = await previewCompaction(agent, instructions, [...parts.history, ...(given?.history ?? []), input]);
  return [instructions, ...agent.modelTools.map((tool) => JSON.stringify(tool)), ...messages.flatMap(messageTexts)];
};

/**
 * The prompt against the window that the catalog gives the model. Without a known window nothing is ever rejected.
 * `reserveRatio` is the share of the window that is left to the answer.
 */
const compareWithWindow = (
  promptTokens: number,
  contextWindowTokens: number | null,
  reserveRatio: number,
): ContextWindowEstimate => {
  if (contextWindowTokens === null)
    return { promptTokens, contextWindowTokens, allowedPromptTokens: null, wouldBeRejected: false };
  const allowedPromptTokens = Math.floor(contextWindowTokens * (1 - reserveRatio));
  return {
    promptTokens,
    contextWindowTokens,
    allowedPromptTokens,
    wouldBeRejected: promptTokens > allowedPromptTokens,
  };
};

/** The numbers of the pre-flight check. Calls no provider. */
export const estimatePrompt = async (parts: PromptParts, reserveRatio: number): Promise<ContextWindowEstimate> => {
  const window = parts.agent.model.catalog?.contextWindowTokens ?? null;
  const promptTokens = (await estimateTokens(await promptTexts(parts))) + parts.otherAttachments * tokensPerFile;
  return compareWithWindow(promptTokens, window, reserveRatio);
};
