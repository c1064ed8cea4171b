import { builtInCriteria } from '../../engine/compiled-agent.ts';
import { agentModes } from '../../engine/context/index.ts';
import type { ModelProviders } from '../../providers/models/model-provider.ts';
import { byteLimit, countLimit, rangeLimit, textLimit } from './agent-limits.rules.ts';
import { modelFindings } from './agent-model.rules.ts';
import { compactionStrategies } from './agent-settings.schema.ts';
import type { AgentContent, HarnessContent, LoopContent } from './agents.content.ts';
import { error, type Finding, quoted } from './agents.findings.ts';

const anyWhole = Number.MAX_SAFE_INTEGER;
const longestPromptBytes = 16_384;
const longestHarnessBytes = 65_536;
const longestMarker = 256;
const most = { criteria: 10, judgeCriteria: 20, iterations: 1000, loopIterations: 100 } as const;
/** Reserved for the answer when neither the settings nor the binding say how long it may be. */
export const defaultOutputTokens = 4096;
const noRoom = 'The window must be larger than what is left to the answer.';
const collectionName = /^[A-Za-z0-9._-]{1,128}$/;

export interface SettingReferences {
  readonly providers: Pick<ModelProviders, 'get' | 'list'>;
  /** Kinds that modules register. */
  readonly loopCriteria: { has(kind: string): boolean };
}

const atLeastOne = (path: string, values: Readonly<Record<string, number | null>>): Finding[] =>
  Object.entries(values).flatMap(([name, value]) => rangeLimit(`${path}.${name}`, value, 1, anyWhole));

/** Whether the window, less the answer, leaves room for a prompt. */
const leavesRoom = (content: AgentContent, window: number | null, output: number | null): boolean =>
  window === null || window > (output ?? content.model.maxOutputTokens ?? defaultOutputTokens);

const compactionFindings = (content: AgentContent, providers: SettingReferences['providers']): Finding[] => {
  const { compaction } = content;
  if (compaction === null) return [];
  const path = 'compaction';
  const { strategy, triggerTokens, triggerMessages, triggerTurns, maxContextWindowTokens, maxOutputTokens } =
    compaction;
  const findings = [
    ...atLeastOne(path, {
      triggerTokens,
      triggerMessages,
      triggerTurns,
      minimumPreservedTurns: compaction.minimumPreservedTurns,
      minimumPreservedGroups: compaction.minimumPreservedGroups,
      maxContextWindowTokens,
      maxOutputTokens,
    }),
    ...byteLimit(`${path}.summarizationPrompt`, compaction.summarizationPrompt, longestPromptBytes),
    ...(compaction.summarizationModel === null
      ? []
      : modelFindings(`${path}.summarizationModel`, compaction.summarizationModel, providers)),
  ];
  const refuse = (member: string, message: string) => findings.push(error('invalid-compaction', member, message));
  const triggers = [triggerTokens, triggerMessages, triggerTurns];
  if (!compactionStrategies.includes(strategy))
    refuse(`${path}.strategy`, `${quoted(strategy)} is no strategy: ${compactionStrategies.join(', ')}.`);
  else if (strategy === 'ContextWindow' && maxContextWindowTokens === null)
    refuse(`${path}.maxContextWindowTokens`, 'The strategy ContextWindow needs maxContextWindowTokens.');
  else if (strategy === 'ContextWindow' && !leavesRoom(content, maxContextWindowTokens, maxOutputTokens))
    refuse(`${path}.maxContextWindowTokens`, noRoom);
  else if (strategy !== 'None' && strategy !== 'ContextWindow' && triggers.every((trigger) => trigger === null))
    refuse(path, `The strategy ${strategy} needs triggerTokens, triggerMessages or triggerTurns.`);
  return findings;
};

const memoryFindings = ({ memory }: AgentContent): Finding[] => {
  if (memory === null) return [];
  const findings: Finding[] = [];
  if (memory.vectorCollection !== null && !collectionName.test(memory.vectorCollection)) {
    const message = 'A collection has a name of 1 to 128 of A-Z a-z 0-9 . _ -.';
    findings.push(error('invalid-memory', 'memory.vectorCollection', message));
  }
  if (memory.enableVectorSearch) {
    const message = 'Vector search needs the feature "knowledge", which this build does not have.';
    findings.push(error('vector-search-unavailable', 'memory.enableVectorSearch', message));
  }
  return findings;
};

const isMode = (word: string): boolean => agentModes.some((mode) => mode === word);

const criterionFindings = (
  path: string,
  criterion: LoopContent['criteria'][number],
  references: SettingReferences,
): Finding[] => {
  const { kind, marker, judgeCriteria, judgeInstructions, modes } = criterion;
  const findings = [
    ...textLimit(`${path}.marker`, marker, longestMarker),
    ...countLimit(`${path}.judgeCriteria`, judgeCriteria.length, most.judgeCriteria),
    ...byteLimit(`${path}.judgeInstructions`, judgeInstructions, longestPromptBytes),
  ];
  const refuse = (member: string, message: string) =>
    findings.push(error('invalid-harness', `${path}.${member}`, message));
  if (!builtInCriteria.some((name) => name === kind) && !references.loopCriteria.has(kind)) {
    const message = `${quoted(kind)} is no loop criterion: neither ${builtInCriteria.join(', ')} nor one of a module.`;
    findings.push(error('loop-criterion-not-found', `${path}.kind`, message));
  }
  if (kind === 'completionMarker' && (marker ?? '') === '')
    refuse('marker', 'The criterion completionMarker needs a marker.');
  if (kind === 'aiJudge' && judgeCriteria.length === 0)
    refuse('judgeCriteria', 'The criterion aiJudge needs judgeCriteria.');
  const stray = modes.findIndex((mode) => !isMode(mode));
  if (stray >= 0) refuse(`modes[${stray}]`, `${quoted(modes[stray] ?? '')} is no mode: ${agentModes.join(', ')}.`);
  return findings;
};

const loopFindings = (loop: LoopContent, references: SettingReferences): Finding[] => {
  const path = 'harness.loop';
  const listed = loop.criteria.slice(0, most.criteria);
  return [
    ...(loop.criteria.length === 0
      ? [error('invalid-harness', `${path}.criteria`, 'A loop needs at least one criterion.')]
      : countLimit(`${path}.criteria`, loop.criteria.length, most.criteria)),
    ...rangeLimit(`${path}.maxIterations`, loop.maxIterations, 1, most.loopIterations),
    ...listed.flatMap((criterion, index) => criterionFindings(`${path}.criteria[${index}]`, criterion, references)),
  ];
};

const harnessFindings = (content: AgentContent, harness: HarnessContent, references: SettingReferences): Finding[] => {
  const { maxContextWindowTokens, maxOutputTokens, maximumIterationsPerRequest, harnessInstructions } = harness;
  const room = harness.disableCompaction || leavesRoom(content, maxContextWindowTokens, maxOutputTokens);
  return [
    ...atLeastOne('harness', { maxContextWindowTokens, maxOutputTokens }),
    ...rangeLimit('harness.maximumIterationsPerRequest', maximumIterationsPerRequest, 1, most.iterations),
    ...byteLimit('harness.harnessInstructions', harnessInstructions, longestHarnessBytes),
    ...(room ? [] : [error('invalid-harness', 'harness.maxContextWindowTokens', noRoom)]),
    ...(harness.loop === null ? [] : loopFindings(harness.loop, references)),
  ];
};

/** Settings that repeat one another, or need something that is off. */
const conflictFindings = ({ harness, compaction, memory }: AgentContent): Finding[] => {
  const findings: Finding[] = [];
  const refuse = (path: string, message: string) => findings.push(error('feature-conflict', path, message));
  if (compaction !== null && compaction.strategy !== 'None' && harness?.disableCompaction === false)
    refuse('compaction', 'The harness compacts by itself; switch one of the two off.');
  if (memory?.enableTodo === true && harness?.disableTodo === false)
    refuse('memory.enableTodo', 'The harness brings the todo list already.');
  if (memory?.enableFileMemory === true && harness?.disableFileMemory === false)
    refuse('memory.enableFileMemory', 'The harness brings the files already.');
  if (memory?.enableTextSearch === true && !memory.enableFileMemory && harness?.disableFileMemory !== false)
    refuse('memory.enableTextSearch', 'There are no files to search: neither memory nor a harness brings any.');
  return findings;
};

/** Compaction, memory, harness and loop, each for itself and against one another. */
export const settingFindings = (content: AgentContent, references: SettingReferences): Finding[] => [
  ...compactionFindings(content, references.providers),
  ...memoryFindings(content),
  ...(content.harness === null ? [] : harnessFindings(content, content.harness, references)),
  ...conflictFindings(content),
];
