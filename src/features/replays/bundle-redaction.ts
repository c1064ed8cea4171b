import type { Json } from '../../contract/schema.ts';
import { canonicalJson } from '../../core/documents/canonical-json.ts';
import {
  type ChatMessage,
  type ContentPart,
  documentText,
  type KeptSummary,
  withResources,
} from '../../engine/context/index.ts';
import { redacted } from '../../engine/record/index.ts';
import type { BundledRun, BundleStart, BundleStep, BundleTool } from './bundle.format.ts';

const hide = <T extends string | null>(text: T): T => (text === null || text === '' ? text : (redacted(text) as T));

const hideJson = (value: Json): Json => redacted(typeof value === 'string' ? value : canonicalJson(value));

/** A part whose prompt has the hash of the original one. */
const redactedPart = (part: ContentPart): ContentPart => {
  switch (part.type) {
    case 'Text':
      return { type: 'Text', text: hide(part.text) };
    case 'Document':
      return { type: 'Text', text: redacted(documentText(part.name, part.text)) };
    case 'ToolCall': {
      const { toolCallId, toolName } = part;
      return { type: 'ToolCall', toolCallId, toolName, arguments: hideJson(part.arguments as Json) };
    }
    case 'ToolResult':
      return { ...part, result: hide(part.result), errorMessage: hide(part.errorMessage) };
    case 'Reasoning':
      return { type: 'Reasoning', text: hide(part.text) };
    default:
      return part;
  }
};

/** Searches of the provider are no part of a prompt's hash, and their results are text of others: they are left out. */
const isHosted = ({ type }: ContentPart): boolean => type === 'HostedCall' || type === 'HostedResult';

const redactedMessage = (message: ChatMessage): ChatMessage => ({
  ...message,
  contents: message.contents.filter((part) => !isHosted(part)).map(redactedPart),
});

/** Members of events that say who, what and how, and never what was said. */
const plainMembers = new Set([
  'agentName',
  'agentVersion',
  'attempt',
  'bucket',
  'callId',
  'canceledBy',
  'cause',
  'ceilingReached',
  'childRunId',
  'class',
  'continuedFromRunId',
  'currency',
  'customType',
  'errorClass',
  'fingerprint',
  'finishReason',
  'fromModel',
  'fromProvider',
  'jobId',
  'kind',
  'lane',
  'messageId',
  'model',
  'modelId',
  'modelProvider',
  'parentRunId',
  'provider',
  'reason',
  'replayOfRunId',
  'requestId',
  'runId',
  'sessionId',
  'source',
  'stage',
  'status',
  'strategy',
  'timestamp',
  'toModel',
  'toProvider',
  'toolCallId',
  'toolName',
  'type',
  'unit',
]);

const redactedMember = (name: string, value: Json): Json => {
  if (typeof value === 'string') return plainMembers.has(name) ? value : hide(value);
  // Whole payloads, as one mark: their members may be anything.
  if ((name === 'arguments' || name === 'structuredOutput' || name === 'payload') && value !== null)
    return hideJson(value);
  if (Array.isArray(value)) return value.map((item: Json) => redactedMember(name, item));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([member, below]) => [member, redactedMember(member, below)]));
};

const redactedSummary = (summary: KeptSummary): KeptSummary => ({
  ...summary,
  message: redactedMessage(summary.message),
});

/** The system text is the definition's, which stands in the bundle; with what was read behind it, it is one mark. */
const redactedResources = ({ compiled, resources = [] }: BundleStart): Partial<BundleStart> => {
  if (resources.length === 0) return {};
  const instructions = hide(withResources(compiled?.instructions ?? null, resources));
  return { compiled: compiled === null ? null : { ...compiled, instructions }, resources: [] };
};

const redactedStart = (start: BundleStart): BundleStart => ({
  ...start,
  ...redactedResources(start),
  input: start.input?.map(redactedMessage) ?? null,
  history: start.history?.map(redactedMessage) ?? null,
  ...(start.historySummary ? { historySummary: redactedSummary(start.historySummary) } : {}),
  openResults: start.openResults?.map(redactedPart) ?? null,
  summaries: start.summaries.map((text) => hide(text)),
  inputs: start.inputs.map((text) => hide(text)),
});

const redactedStep = (step: BundleStep): BundleStep => ({
  ...step,
  answer:
    step.answer === null
      ? null
      : {
          ...step.answer,
          text: hide(step.answer.text),
          toolCalls: step.answer.toolCalls.map((call) => ({ ...call, arguments: hideJson(call.arguments) })),
        },
});

const redactedTool = (tool: BundleTool): BundleTool => ({
  ...tool,
  // As JSON text of the mark, which is what the repeated answer asks with.
  arguments: tool.arguments === null ? null : JSON.stringify(redacted(tool.arguments)),
  result: hide(tool.result),
  error: hide(tool.error),
});

/**
 * Without what people, models and tools said: each text becomes a mark with its length and hash, so that the bundle can
 * still be replayed. Definitions, parameters, names, ids and numbers stay.
 */
export const redactedRun = (run: BundledRun): BundledRun => ({
  ...run,
  start: redactedStart(run.start),
  steps: run.steps.map(redactedStep),
  tools: run.tools.map(redactedTool),
  events: run.events.map((event) => redactedMember('', event) as Readonly<Record<string, Json>>),
});
