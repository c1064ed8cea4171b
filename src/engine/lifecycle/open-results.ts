import type { ActiveRun } from '../active-run.ts';
import type { ContentPart } from '../context/index.ts';
import type { RecordPorts } from '../record/index.ts';

/**
 * Results of the calls that another run had left open, for the record of a run whose session does not keep them:
 * without them no prompt of it could be made again. Undefined: there is nothing to keep; null: they may not be kept whole.
 */
export const openResultsToKeep = (
  run: Pick<ActiveRun, 'plan' | 'messages'>,
  { settings }: Pick<RecordPorts, 'settings'>,
  sessionKeepsTurn: boolean,
): readonly ContentPart[] | null | undefined => {
  const { resume } = run.plan;
  if (sessionKeepsTurn || resume === null || resume.calls.length === 0) return undefined;
  // The turn goes on with one message of results.
  const message = run.messages[resume.messages.length];
  const parts = message?.role === 'Tool' ? message.contents : [];
  const { recordToolPayloads, maxPayloadLength: limit } = settings.recording;
  const isWhole = (part: ContentPart): boolean =>
    part.type === 'ToolResult' && (limit === 0 || (part.result ?? part.errorMessage ?? '').length <= limit);
  return recordToolPayloads && parts.every(isWhole) ? parts : null;
};
