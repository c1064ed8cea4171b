import type { Command } from 'commander';
import type { RunTrace } from '../../features/runs/runs.schema.ts';
import { formatDuration, formatTime } from '../../text/format.ts';
import { type TreeRow, treeRows } from '../../text/run-tree.ts';
import type { Style } from '../../text/style.ts';
import { safeLine } from '../../text/text-width.ts';
import { type CommandHost, covers } from '../command-host.ts';

type TraceSpan = RunTrace['spans'][number];

/** What a span is about: the agent, model, tool or whatever else names it. */
const spanSubject = ({ attributes }: TraceSpan): string =>
  attributes['gen_ai.tool.name'] ??
  attributes['acp.guard.name'] ??
  attributes['gen_ai.agent.name'] ??
  attributes['gen_ai.request.model'] ??
  '';

const after = (from: string, to: string): number => Date.parse(to) - Date.parse(from);

const tokens = ({ attributes }: TraceSpan): string => {
  const input = attributes['gen_ai.usage.input_tokens'];
  const output = attributes['gen_ai.usage.output_tokens'];
  return input === undefined && output === undefined ? '' : `${input ?? '?'} in, ${output ?? '?'} out`;
};

const describe = ({ node: span, lead }: TreeRow<TraceSpan>, traceStart: string, style: Style): string => {
  const { attributes, name, startedAt, endedAt, status } = span;
  const error = status === 'Error' ? style.red(safeLine(attributes['error.type'] ?? 'failed')) : '';
  const parts = [
    style.bold(name.replace(/^acp\./, '')),
    safeLine(spanSubject(span)),
    endedAt === null ? 'still running' : formatDuration(after(startedAt, endedAt)),
    error,
    tokens(span),
    style.dim(`+${formatDuration(after(traceStart, startedAt))}`),
  ];
  return `${lead}${parts.filter((part) => part !== '').join('  ')}`;
};

/** The spans as a tree, each with its time and where in the trace it began. */
const renderTrace = ({ traceId, startedAt, spans }: RunTrace, style: Style): string => {
  // In the order of their starts.
  const rows = treeRows(spans, ({ parentId }) => parentId).map((row) => `${describe(row, startedAt, style)}\n`);
  return `${style.dim(`trace ${traceId}, ${formatTime(startedAt)}`)}\n${rows.join('')}`;
};

/** `acp runs trace`: where the time of a run went. */
export const registerRunsTrace = (runs: Command, host: CommandHost): void => {
  const command = runs
    .command('trace')
    .description('show the stored spans of the complete run tree, given any run of it')
    .argument('<run-id>');
  covers(command, 'runs.trace').action(
    host.act(async ({ print, connected }, { args }) => {
      const [runId] = args as [string];
      const { body } = await connected(({ client }) => client.runs.trace({ params: { runId } }));
      await print(body, ({ style }) => renderTrace(body, style));
    }),
  );
};
