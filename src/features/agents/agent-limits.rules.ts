import { type Json, namePattern } from '../../contract/schema.ts';
import type { AgentContent } from './agents.content.ts';
import { error, errorUnless, type Finding, quoted } from './agents.findings.ts';

const agentName = new RegExp(namePattern);

export const maxInstructionBytes = 262_144;
export const maxListed = {
  parameters: 64,
  tools: 128,
  callableAgents: 32,
  remoteAgents: 16,
  resources: 32,
  cultures: 32,
  fallbacks: 5,
} as const;
const maxMetadataBytes = 16_384;
const longestWaitMs = 86_400_000;
// Recursive readers of a definition (JSON writers, schema compilers) must never meet the end of their stack.
const deepestJson = 100;

export const isAgentName = (name: string): boolean => agentName.test(name);

const nestedDeeper = (value: Json, levels: number): boolean => {
  if (typeof value !== 'object' || value === null) return false;
  if (levels === 0) return true;
  return Object.values(value).some((member: Json) => nestedDeeper(member, levels - 1));
};

/** Empty when the value can be written as JSON without care. */
export const nestingFindings = (path: string, value: Json): Finding[] =>
  nestedDeeper(value, deepestJson)
    ? [error('value-out-of-range', path, `${path} is nested deeper than ${deepestJson} levels.`)]
    : [];

/** Length in characters, as JSON Schema counts them. */
export const textLimit = (path: string, text: string | null, most: number): Finding[] =>
  text === null || text.length <= most || [...text].length <= most
    ? []
    : [error('too-long', path, `${path} is longer than ${most} characters.`)];

export const byteLimit = (path: string, text: string | null, most: number): Finding[] =>
  text === null || Buffer.byteLength(text) <= most
    ? []
    : [error('too-long', path, `${path} is longer than ${most} bytes.`)];

export const countLimit = (path: string, count: number, most: number): Finding[] =>
  count <= most ? [] : [error('too-long', path, `${path} has ${count} entries; at most ${most} are allowed.`)];

export const rangeLimit = (path: string, value: number | null, least: number, most: number): Finding[] =>
  errorUnless(
    value === null || (value >= least && value <= most),
    'value-out-of-range',
    path,
    `${path} must be ${most === Number.MAX_SAFE_INTEGER ? `at least ${least}` : `${least} to ${most}`}.`,
  );

/** A finding for each entry that an earlier one equals. */
const duplicateFindings = (path: string, keys: readonly string[], what: string): Finding[] => {
  const seen = new Set<string>();
  return keys.flatMap((key, index) => {
    if (seen.has(key))
      return [error('duplicate-entry', `${path}[${index}]`, `${what} ${quoted(key)} is listed twice.`)];
    seen.add(key);
    return [];
  });
};

export interface WaitDefaults {
  readonly childDeadlineMs: number | null;
  readonly waitTimeoutMs: number | null;
}

const subAgentFindings = ({ subAgents }: AgentContent, defaults: WaitDefaults): Finding[] => {
  if (subAgents === null) return [];
  const deadline = subAgents.childDeadlineMs ?? defaults.childDeadlineMs;
  const wait = subAgents.waitTimeoutMs ?? defaults.waitTimeoutMs;
  return [
    ...rangeLimit('subAgents.childDeadlineMs', subAgents.childDeadlineMs, 1, longestWaitMs),
    ...rangeLimit('subAgents.waitTimeoutMs', subAgents.waitTimeoutMs, 1, longestWaitMs),
    ...errorUnless(
      deadline === null || wait === null || wait > deadline,
      'value-out-of-range',
      'subAgents.waitTimeoutMs',
      `The wait for a child (${wait} ms) must be longer than the time the child gets (${deadline} ms).`,
    ),
  ];
};

const metadataFindings = (metadata: Record<string, Json>): Finding[] => {
  const nesting = nestingFindings('metadata', metadata);
  return nesting.length > 0 ? nesting : byteLimit('metadata', JSON.stringify(metadata), maxMetadataBytes);
};

/** Name and sizes: what can be said of a definition without knowing anything else. */
export const limitFindings = (content: AgentContent, defaults: WaitDefaults): Finding[] => [
  ...errorUnless(
    isAgentName(content.name),
    'invalid-name',
    'name',
    `${quoted(content.name)} is no agent name: 1 to 128 of A-Z a-z 0-9 . _ - that start with a letter or digit.`,
  ),
  ...textLimit('displayName', content.displayName, 128),
  ...textLimit('description', content.description, 1024),
  ...byteLimit('instructions', content.instructions, maxInstructionBytes),
  ...countLimit('parameters', content.parameters.length, maxListed.parameters),
  ...countLimit('toolNames', content.toolNames.length, maxListed.tools),
  ...countLimit('callableAgentNames', content.callableAgentNames.length, maxListed.callableAgents),
  ...countLimit('mcpResourceUris', content.mcpResourceUris.length, maxListed.resources),
  ...duplicateFindings('toolNames', content.toolNames, 'The tool'),
  ...duplicateFindings('callableAgentNames', content.callableAgentNames, 'The agent'),
  ...duplicateFindings('mcpResourceUris', content.mcpResourceUris, 'The resource'),
  ...subAgentFindings(content, defaults),
  ...metadataFindings(content.metadata),
];
