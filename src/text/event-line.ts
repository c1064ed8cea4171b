import type { Frame } from '../contract/operation.ts';
import type { ToolApprovalPresentation } from '../contract/tool-approval.ts';
import type { RunCost, RunError, RunUsage } from '../features/runs/runs.schema.ts';
import { formatCost, formatDuration, joined } from './format.ts';
import { providerReasonText } from './provider-reason.ts';
import type { Style } from './style.ts';
import { fitText, safeLine } from './text-width.ts';

/** The data of a frame. Which members there are depends on the event. */
export interface EventData {
  readonly [member: string]: unknown;
}

export const frameData = (frame: Frame): EventData => JSON.parse(frame.data) as EventData;

const payloadWidth = 160;

const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const count = (value: unknown): number => (typeof value === 'number' ? value : 0);

/** A tool's arguments or result on one line, cut; they may be large and need not be JSON. */
const payload = (value: unknown): string => {
  if (value === null || value === undefined) return '';
  return fitText(safeLine(typeof value === 'string' ? value : JSON.stringify(value)), payloadWidth);
};

/** `120 tokens (100 in, 20 out)`; empty when the provider reported nothing. */
const usageText = (usage: RunUsage | null | undefined): string => {
  const total = usage?.totalTokens ?? null;
  if (usage === null || usage === undefined || total === null) return '';
  const detail = joined(
    [
      usage.inputTokens === null ? '' : `${usage.inputTokens} in`,
      usage.cachedInputTokens === null || usage.cachedInputTokens === 0 ? '' : `${usage.cachedInputTokens} cached`,
      usage.outputTokens === null ? '' : `${usage.outputTokens} out`,
      usage.reasoningTokens === null || usage.reasoningTokens === 0 ? '' : `${usage.reasoningTokens} reasoning`,
    ],
    ', ',
  );
  return `${total} tokens${detail === '' ? '' : ` (${detail})`}`;
};

const costText = (cost: Pick<RunCost, 'totalCost' | 'currency'> | null | undefined): string =>
  cost === null || cost === undefined || cost.totalCost === null ? '' : formatCost(cost.totalCost, cost.currency);

const durationText = ({ durationMs }: EventData): string =>
  typeof durationMs === 'number' ? formatDuration(durationMs) : '';

/** Duration, tokens and cost of a run, as far as they are known. */
export const runSummary = (data: EventData): string =>
  joined([
    durationText(data),
    usageText(data['usage'] as RunUsage | null | undefined),
    costText(data['cost'] as RunCost | null | undefined),
  ]);

type Line = (data: EventData, style: Style) => string;

const failure = (data: EventData): string => {
  const error = data['error'] as RunError | null | undefined;
  if (error === null || error === undefined) return '';
  const reason = error.provider === undefined ? '' : ` ${providerReasonText(error.provider)}`;
  return `${error.class} (${error.type}): ${error.message}${reason}`;
};

const toolLine =
  (mark: string, member: string): Line =>
  (data) =>
    joined([mark, text(data['toolName']), durationText(data), payload(data[member])], ' ');

const lines: Readonly<Record<string, Line>> = {
  'run.queued': (data) => (typeof data['position'] === 'number' ? `queued, position ${data['position']}` : 'queued'),
  'run.started': (data) => {
    const model = [data['modelProvider'], data['modelId']].filter((part) => typeof part === 'string').join('/');
    const version = typeof data['agentVersion'] === 'number' ? ` v${data['agentVersion']}` : '';
    const attempt = count(data['attempt']) > 1 ? `attempt ${count(data['attempt'])}` : '';
    return joined([`started ${text(data['agentName'])}${version}`, model, attempt]);
  },
  'tool.invoking': toolLine('→', 'arguments'),
  'tool.invoked': toolLine('✓', 'result'),
  'tool.failed': (data, style) => style.red(toolLine('✗', 'error')(data, style)),
  'tool.output-truncated': (data) =>
    `${text(data['toolName'])}: ${count(data['omittedBytes'])} bytes of its result left out`,
  'approval.requested': (data, style) => {
    const { message = null } = (data['presentation'] ?? {}) as Partial<ToolApprovalPresentation>;
    const asked = style.yellow(`approval needed: ${text(data['toolName'])} ${payload(data['arguments'])}`);
    return joined([asked, payload(message), `request ${payload(data['requestId'])}`]);
  },
  'client-tool.requested': (data, style) =>
    joined([
      style.yellow(`waits for the client: ${text(data['toolName'])} ${payload(data['arguments'])}`),
      `call ${payload(data['callId'])}`,
    ]),
  'child.started': (data) => `→ agent ${text(data['agentName'])} run ${text(data['childRunId'])}`,
  'child.completed': (data) => joined([`✓ agent ${text(data['agentName'])} ${text(data['status'])}`, runSummary(data)]),
  'child.timed-out': (data, style) =>
    style.yellow(
      `✗ agent ${text(data['agentName'])} took over ${formatDuration(count(data['limitMs']))} (${text(data['stage'])})`,
    ),
  'model.fallback-used': (data, style) =>
    style.yellow(
      `${text(data['fromProvider'])}/${text(data['fromModel'])} failed (${text(data['errorClass'])}), going on with ${text(data['toProvider'])}/${text(data['toModel'])}`,
    ),
  'history.compacted': (data) =>
    `history compacted: ${count(data['messagesBefore'])} → ${count(data['messagesAfter'])} messages`,
  'content.masked': (data, style) => style.yellow(`content masked by ${text(data['guardName'])}`),
  'content.blocked': (data, style) => style.red(`content blocked by ${text(data['guardName'])}`),
  'document.attached': (data) => `document ${text(data['name'])} (${count(data['bytes'])} bytes)`,
  'structured-response.rejected': (data, style) =>
    style.yellow(`answer does not fit the format: ${text(data['reason'])}`),
  'usage.updated': (data) =>
    joined([usageText(data['usage'] as RunUsage | null), costText(data['cost'] as RunCost | null)]),
  custom: (data) => `${text(data['customType'])} ${payload(data['payload'])}`,
  error: (data, style) => style.red(`error: ${text(data['message'])}`),
  'run.completed': (data, style) =>
    data['warnings'] === undefined
      ? joined([style.green('completed'), runSummary(data)])
      : joined([style.yellow('completed, the record is incomplete'), runSummary(data)]),
  'run.failed': (data, style) => joined([style.red(`failed ${failure(data)}`), runSummary(data)]),
  'run.canceled': (data, style) =>
    joined([style.yellow(`canceled (${text(data['cause'])})`), text(data['canceledBy']), runSummary(data)]),
  'run.awaiting-approval': (data, style) => joined([style.yellow('waits for an approval'), runSummary(data)]),
  'run.awaiting-input': (data, style) => joined([style.yellow('waits for input'), runSummary(data)]),
};

/** One line about an event, or null for message text and for names that this version does not know. */
export const eventLine = (event: string, data: EventData, style: Style): string | null => {
  if (!Object.hasOwn(lines, event)) return null;
  const line = lines[event]?.(data, style).trim() ?? '';
  return line === '' ? null : line;
};
