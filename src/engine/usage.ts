import type { ModelUsage } from '../providers/models/model-provider.ts';

const plus = (a: number | null, b: number | null): number | null => (a === null ? b : b === null ? a : a + b);

/** Sums what was reported; a count that neither side reported stays null. */
export const addUsage = (a: ModelUsage, b: ModelUsage): ModelUsage => ({
  inputTokens: plus(a.inputTokens, b.inputTokens),
  outputTokens: plus(a.outputTokens, b.outputTokens),
  totalTokens: plus(a.totalTokens, b.totalTokens),
  cachedInputTokens: plus(a.cachedInputTokens, b.cachedInputTokens),
  reasoningTokens: plus(a.reasoningTokens, b.reasoningTokens),
  audioInputTokens: plus(a.audioInputTokens, b.audioInputTokens),
  audioOutputTokens: plus(a.audioOutputTokens, b.audioOutputTokens),
});

/** Null when nothing at all was reported. */
export const reportedUsage = (usage: ModelUsage): ModelUsage | null =>
  Object.values(usage).every((count) => count === null) ? null : usage;
