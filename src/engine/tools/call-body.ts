import type { Json } from '../../contract/schema.ts';
import type { CallScope } from './call-scope.ts';
import { withDeadline } from './deadline.ts';
import { inspectedQuestions, ToolQuestions } from './questions.ts';
import type { RegisteredTool } from './registry.ts';
import { cutText, errorClassOf, isToolError, maxToolErrorLength, ToolStop } from './tool.ts';
import type { ToolCallDeps, ToolCallHooks, ToolCallRequest, ToolOutcome } from './tool-call.ts';
import { attachmentLines, canonicalText, outputLimit, truncateOutput } from './tool-output.ts';

/** How a call ended. Members that are left out have the values of a call without a result. */
export type CallEnd = Pick<ToolOutcome, 'status' | 'text'> & Partial<ToolOutcome>;

export const canceled: CallEnd = { status: 'canceled', text: 'The call was canceled with its run.' };

export const invalid = (text: string): CallEnd => ({ status: 'invalid', text: cutText(text, maxToolErrorLength) });

export const thrown = (error: unknown, request: ToolCallRequest, deps: ToolCallDeps): CallEnd => {
  if (error instanceof ToolStop)
    return { status: error.status, text: error.message, error: error.recorded, errorClass: error.name };
  const errorClass = errorClassOf(error);
  const fields = { requestId: request.requestId, runId: request.run.runId, tool: request.toolName };
  if (isToolError(error)) {
    if (error.cause !== undefined) deps.log.warn({ ...fields, err: error.cause }, 'A tool reported an error');
    const text = cutText(String(error.message), maxToolErrorLength).toWellFormed();
    return { status: 'failed', text, errorClass };
  }
  deps.log.warn({ ...fields, err: error }, 'A tool threw an error');
  return { status: 'failed', text: `Tool failed with ${errorClass}.`, errorClass };
};

/** A result as text: inspected as a whole, then cut, with the names of the files that the body has saved. */
const resultEnd = async (
  value: Json | null | undefined,
  tool: RegisteredTool,
  scope: CallScope,
  hooks: ToolCallHooks,
  deps: ToolCallDeps,
): Promise<CallEnd> => {
  const limit = outputLimit(tool.descriptor.maxOutputBytes, deps.defaultMaxOutputBytes);
  const whole = canonicalText(value);
  const output = truncateOutput(hooks.inspect === undefined ? whole : await hooks.inspect(whole), limit);
  const lines = attachmentLines(output.text, scope.saved());
  const files = hooks.inspect === undefined || lines === '' ? lines : await hooks.inspect(lines);
  return { status: 'succeeded', ...output, text: output.text + files };
};

const askedEnd = async (asked: ToolQuestions, hooks: ToolCallHooks): Promise<CallEnd> => {
  const shown = await inspectedQuestions(asked, hooks.inspect);
  if (shown !== null) return { status: 'waiting', text: 'The call waits for answers.', asked: shown };
  return { status: 'failed', text: 'Tool failed: what it asks may not be shown.', errorClass: 'ToolError' };
};

/** Makes the call: timeout, body, canonical text, content guards and truncation. Never rejects. */
export const runBody = async (
  tool: RegisteredTool,
  args: Json,
  request: ToolCallRequest,
  scope: CallScope,
  hooks: ToolCallHooks,
  deps: ToolCallDeps,
): Promise<CallEnd> => {
  const timeoutMs = tool.ownsTimeout ? null : (tool.descriptor.timeoutMs ?? deps.defaultTimeoutMs);
  const end = await withDeadline<Json | null | undefined>(
    async (signal) => {
      const context = { ...scope.context, signal };
      return tool.body === null ? tool.definition.execute?.(args, context) : tool.body(args, context, request);
    },
    timeoutMs,
    request.signal,
  );
  if (end.kind === 'canceled') return canceled;
  if (end.kind === 'timedOut')
    return {
      status: 'timed_out',
      text: `The tool did not answer within ${end.timeoutMs} ms.`,
      errorClass: 'ToolTimeout',
    };
  if (end.kind === 'threw' && end.error instanceof ToolQuestions) return askedEnd(end.error, hooks);
  if (end.kind === 'threw') return thrown(end.error, request, deps);
  try {
    return await resultEnd(end.value, tool, scope, hooks, deps);
  } catch (error) {
    // A result that JSON cannot hold is the body's fault, like an error that it throws.
    return thrown(error, request, deps);
  }
};
