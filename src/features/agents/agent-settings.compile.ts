import type { CompactionPlan, CompiledAgent, CompiledBinding, LoopPlan } from '../../engine/compiled-agent.ts';
import { compileBinding, plainBinding } from './agent-binding.compile.ts';
import { defaultOutputTokens } from './agent-settings.rules.ts';
import { offersWebSearch } from './agent-web-search.rules.ts';
import type { AgentContent } from './agents.content.ts';
import type { AgentReferences } from './agents.rules.ts';

type Settings = Pick<CompiledAgent, 'compaction' | 'loop' | 'maxIterations' | 'hasMemory' | 'hasModes' | 'webSearch'>;

const preserved = { turns: 2, groups: 4 } as const;
const defaultLoopIterations = 10;

/** The window less what is left to the answer; at least one token, so that a tiny window is no missing limit. */
const promptTokens = (window: number, output: number | null, model: CompiledBinding): number =>
  Math.max(1, window - (output ?? model.maxOutputTokens ?? defaultOutputTokens));

/** The model of the service's own calls: the one configured for them, else the agent's. */
const utilityModel = (model: CompiledBinding, { providers, utilityModel: configured }: AgentReferences) =>
  configured === null ? model : plainBinding(configured, providers);

const ownCompaction = (
  content: AgentContent,
  model: CompiledBinding,
  references: AgentReferences,
): CompactionPlan | null => {
  const { compaction } = content;
  if (compaction === null || compaction.strategy === 'None') return null;
  const { strategy, maxContextWindowTokens: window, summarizationModel } = compaction;
  return {
    strategy,
    triggerTokens: compaction.triggerTokens,
    triggerMessages: compaction.triggerMessages,
    triggerTurns: compaction.triggerTurns,
    minimumPreservedTurns: compaction.minimumPreservedTurns ?? preserved.turns,
    minimumPreservedGroups: compaction.minimumPreservedGroups ?? preserved.groups,
    maxPromptTokens:
      strategy === 'ContextWindow' && window !== null ? promptTokens(window, compaction.maxOutputTokens, model) : null,
    summarizationPrompt: compaction.summarizationPrompt,
    summaryModel:
      summarizationModel === null
        ? utilityModel(model, references)
        : compileBinding(summarizationModel, references.providers),
  };
};

/** At the harness's window, else at the one that the catalog gives the model; without any nothing is compacted. */
const harnessCompaction = ({ harness }: AgentContent, model: CompiledBinding): CompactionPlan | null => {
  if (harness === null || harness.disableCompaction) return null;
  const window = harness.maxContextWindowTokens ?? model.catalog?.contextWindowTokens ?? null;
  if (window === null) return null;
  return {
    strategy: 'ContextWindow',
    triggerTokens: null,
    triggerMessages: null,
    triggerTurns: null,
    minimumPreservedTurns: preserved.turns,
    minimumPreservedGroups: preserved.groups,
    maxPromptTokens: promptTokens(window, harness.maxOutputTokens, model),
    summarizationPrompt: null,
    summaryModel: model,
  };
};

const loopPlan = ({ harness }: AgentContent, model: CompiledBinding, references: AgentReferences): LoopPlan | null => {
  const loop = harness?.loop ?? null;
  if (loop === null) return null;
  return {
    criteria: loop.criteria,
    maxIterations: loop.maxIterations ?? defaultLoopIterations,
    freshContextPerIteration: loop.freshContextPerIteration,
    judgeModel: utilityModel(model, references),
  };
};

/** Compaction, loop and what else a harness adds, with every default applied. */
export const compileSettings = (
  content: AgentContent,
  model: CompiledBinding,
  references: AgentReferences,
): Settings => {
  const { harness } = content;
  return {
    compaction: ownCompaction(content, model, references) ?? harnessCompaction(content, model),
    loop: loopPlan(content, model, references),
    maxIterations: harness?.maximumIterationsPerRequest ?? null,
    hasMemory: content.memory !== null || harness !== null,
    hasModes: harness !== null && !harness.disableModes,
    webSearch: offersWebSearch(content),
  };
};
