import type { Span } from '../../../core/telemetry/span.ts';
import type { ModelToolCall } from '../../../providers/models/model-provider.ts';
import type { RegisteredTool, ToolOutcome } from '../../tools/index.ts';
import type { ContentGuards } from './guard-port.ts';
import {
  type Block,
  blockedText,
  type GuardedRun,
  guardsOf,
  inspectText,
  type TextPlace,
  tellMasks,
} from './run-guard.ts';

/** The guards around one tool call. */
export interface CallGuard {
  /** Set once something of the call was blocked; its record has the placeholder, and the run ends after it. */
  readonly block: Block | null;
  /** A result before it is cut: as the model may have it. */
  result(text: string): Promise<string>;
  /** A call that ended in another way than by a result of its body. */
  ended(outcome: ToolOutcome): Promise<ToolOutcome>;
}

/** Null: what tools answer is not inspected. */
export const guardCall = (
  run: GuardedRun,
  allGuards: ContentGuards,
  { toolName }: ModelToolCall,
  tool: RegisteredTool | undefined,
  span: Span | null,
): CallGuard | null => {
  const source = tool?.resultSource ?? 'ToolResult';
  const guards = guardsOf(allGuards, source);
  if (guards === null) return null;
  const toolSource = source === 'RemoteTool' ? (tool?.descriptor.source ?? null) : null;
  const place: TextPlace = { source, toolName, toolSource, span };
  let block: Block | null = null;
  // Not ended by a cancel: the call has happened and is recorded, and what is recorded must have been inspected.
  const pass = async (text: string): Promise<string> => {
    if (block !== null) return blockedText;
    if (text === '') return text;
    const inspected = await inspectText(run, guards, text, place);
    tellMasks(run, source, inspected.masks);
    if (inspected.block === null) return inspected.text;
    block = { source, finding: inspected.block };
    return blockedText;
  };
  return {
    get block() {
      return block;
    },
    result: pass,
    async ended(outcome) {
      const text = await pass(outcome.text);
      if (text === outcome.text) return outcome;
      return { ...outcome, text, error: outcome.error === null ? null : text };
    },
  };
};
