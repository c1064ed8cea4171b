import type { Json } from '../../contract/schema.ts';
import type { ClientToolCall, ToolApprovalPresentation } from '../../contract/tool-approval.ts';
import type { Style } from '../../text/style.ts';
import { visibleLine } from '../../text/text-width.ts';
import { wrapText } from '../../text/wrap-text.ts';

/** A call as a person is shown it who decides about it. */
export interface ShownCall {
  readonly toolName: string;
  readonly arguments: Json | null;
  readonly truncated?: boolean;
  readonly presentation?: ToolApprovalPresentation | null;
  readonly elicitation?: NonNullable<ClientToolCall['elicitation']>;
}

// Without a terminal nothing is known of the width; text is not cut, only wrapped where lines would get unreadable.
const defaultWidth = 100;
// The bar keeps whatever a model or a presenter wrote from looking like a line of this program.
const leftBar = '│ ';

const argumentText = ({ arguments: args, truncated }: ShownCall): string[] => {
  if (args === null) return ['(arguments are not recorded)'];
  if (typeof args === 'string') return [visibleLine(args), ...(truncated === true ? ['(cut here)'] : [])];
  const isEmpty = typeof args === 'object' && Object.keys(args).length === 0;
  return isEmpty ? ['(no arguments)'] : JSON.stringify(args, null, 2).split('\n').map(visibleLine);
};

const presentationText = (presentation: ToolApprovalPresentation | null | undefined): string[] => {
  if (presentation === null || presentation === undefined) return [];
  const { entityType, entityId, entityName, message } = presentation;
  const entity = [entityType, entityId, entityName].filter((part) => part !== null && part !== '').join(' ');
  return [message ?? '', entity].filter((text) => text !== '').map(visibleLine);
};

/** What a server asks, and how the answer is written unless it is asked for. An address is shown whole, and never opened. */
const questionText = ({ elicitation }: ShownCall, isAsked: boolean): string[] => {
  if (elicitation === undefined) return [];
  const { mode, message, requestedSchema, url } = elicitation;
  return [
    `The server asks: ${message}`,
    ...(mode === 'url' ? [`Open this address yourself, if you trust it: ${url}`] : []),
    ...(mode === 'form' && !isAsked ? [JSON.stringify(requestedSchema)] : []),
    ...(isAsked ? [] : ['Answer: {"action":"accept","content":{…}}, or with "decline" or "cancel"']),
  ].map(visibleLine);
};

/**
 * Name, presentation and all arguments of a call that waits, each line at most as wide as the terminal. `isAsked`: what its
 * server wants to know is asked for next.
 */
export const waitingCallText = (
  title: string,
  call: ShownCall,
  width: number | undefined,
  style: Style,
  isAsked = false,
): string => {
  const inner = Math.max(20, (width ?? defaultWidth) - leftBar.length);
  const lines = [...presentationText(call.presentation), ...argumentText(call), ...questionText(call, isAsked)];
  return [
    `${title} ${style.bold(visibleLine(call.toolName))}`,
    ...lines.flatMap((line) => wrapText(line, inner)).map((line) => `${style.dim(leftBar.trimEnd())} ${line}`),
  ]
    .map((line) => `${line}\n`)
    .join('');
};
