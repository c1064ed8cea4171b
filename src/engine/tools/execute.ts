import type { Json } from '../../contract/schema.ts';
import { canonicalJson } from '../../core/documents/canonical-json.ts';
import { parseArguments } from './arguments.ts';
import { authorizeCall } from './authorize.ts';
import { type CallScope, openCallScope } from './call-scope.ts';
import { type DeadlineEnd, withDeadline } from './deadline.ts';
import { errorClassOf } from './error-class.ts';
import type { RegisteredTool } from './registry.ts';
import { cutText, isToolError, maxToolErrorLength, ToolStop } from './tool.ts';
import type { ToolCallDeps, ToolCallHooks, ToolCallRequest, ToolOutcome } from './tool-call.ts';
import { attachmentLines, canonicalText, outputLimit, truncateOutput } from './tool-output.ts';

type End = Pick<ToolOutcome, 'status' | 'text'> & Partial<ToolOutcome>;

const canceled: End = { status: 'canceled', text: 'The call was canceled with its run.' };

const invalid = (text: string): End => ({ status: 'invalid', text: cutText(text, maxToolErrorLength) });

const thrown = (error: unknown, request: ToolCallRequest, deps: ToolCallDeps): End => {
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

/** What is wrong with the arguments; null when the body may have them. Throws what the tool's own check throws. */
const argumentsMistake = (tool: RegisteredTool, args: Json): string | null => {
  if (typeof args !== 'object' || args === null || Array.isArray(args)) return 'The arguments must be a JSON object.';
  const misfits = tool.checkArguments(args);
  const messages = misfits.length > 0 ? misfits : (tool.definition.validate?.(args) ?? []);
  return messages.length === 0 ? null : `The arguments do not fit: ${messages.map(String).join('; ')}.`;
};

const canonicalArguments = (args: Json | undefined): string | null => {
  if (args === undefined) return null;
  try {
    return canonicalJson(args);
  } catch {
    // Nested beyond what may be walked; the model is told so.
    return null;
  }
};

/** A result as text: inspected as a whole, then cut, with the names of the files that the body has saved. */
const resultEnd = async (
  value: Json | null | undefined,
  tool: RegisteredTool,
  scope: CallScope,
  hooks: ToolCallHooks,
  deps: ToolCallDeps,
): Promise<End> => {
  const limit = outputLimit(tool.descriptor.maxOutputBytes, deps.defaultMaxOutputBytes);
  const whole = canonicalText(value);
  const output = truncateOutput(hooks.inspect === undefined ? whole : await hooks.inspect(whole), limit);
  const lines = attachmentLines(output.text, scope.saved());
  const files = hooks.inspect === undefined || lines === '' ? lines : await hooks.inspect(lines);
  return { status: 'succeeded', ...output, text: output.text + files };
};

const bodyEnd = async (
  end: DeadlineEnd<Json | null | undefined>,
  tool: RegisteredTool,
  request: ToolCallRequest,
  scope: CallScope,
  hooks: ToolCallHooks,
  deps: ToolCallDeps,
): Promise<End> => {
  if (end.kind === 'canceled') return canceled;
  if (end.kind === 'timedOut')
    return {
      status: 'timed_out',
      text: `The tool did not answer within ${end.timeoutMs} ms.`,
      errorClass: 'ToolTimeout',
    };
  if (end.kind === 'threw') return thrown(end.error, request, deps);
  try {
    return await resultEnd(end.value, tool, scope, hooks, deps);
  } catch (error) {
    // A result that JSON cannot hold is the body's fault, like an error that it throws.
    return thrown(error, request, deps);
  }
};

/** Why a call that could be made is not: somebody else has the next word, its turn has failed, or it was refused. */
type CallStop = 'waiting' | 'canceled' | { readonly refused: string };

/** A call that is allowed and whose arguments fit. Nothing of it has happened. */
export interface PreparedCall {
  readonly tool: RegisteredTool;
  readonly args: Json;
  readonly canonicalArguments: string;
  /** The end of a call that is not made. */
  stopped(reason: CallStop): ToolOutcome;
  /** Makes the call: timeout, body, canonical text, content guards and truncation. Never rejects. */
  execute(): Promise<ToolOutcome>;
}

/**
 * A call up to its body: authorization, then validation, then what the tool itself asks first. A later step never runs when
 * an earlier one ended the call, and nothing that a tool or a model does rejects it.
 */
export const prepareCall = async (
  request: ToolCallRequest,
  hooks: ToolCallHooks,
  deps: ToolCallDeps,
): Promise<PreparedCall | ToolOutcome> => {
  let startedAt = performance.now();
  const { tool, signal } = request;
  const args = parseArguments(request.argumentsText);
  const canonical = canonicalArguments(args);
  const scope = openCallScope(request, hooks, deps);
  const done = (end: End): ToolOutcome => {
    scope.close();
    return {
      error: end.status === 'succeeded' ? null : end.text,
      arguments: canonical ?? request.argumentsText,
      durationMs: performance.now() - startedAt,
      usage: scope.usage(),
      truncation: null,
      errorClass: null,
      ...end,
    };
  };

  if (tool === undefined)
    return done(invalid(`There is no tool with the name ${JSON.stringify(cutText(request.toolName, 64))}.`));

  const denial = await authorizeCall(tool.descriptor, args ?? null, scope.context, request, deps);
  if (signal.aborted) return done(canceled);
  if (denial !== null) return done({ status: 'denied', text: denial });

  if (args === undefined) return done(invalid('The arguments are not valid JSON.'));
  if (canonical === null) return done(invalid('The arguments are nested too deeply.'));
  try {
    const mistake = argumentsMistake(tool, args);
    if (mistake !== null) return done(invalid(mistake));
    await tool.admit?.(args, { ...scope.context, signal }, request);
  } catch (error) {
    return done(thrown(error, request, deps));
  }

  return {
    tool,
    args,
    canonicalArguments: canonical,
    stopped(reason) {
      if (reason === 'canceled') return done(canceled);
      if (reason === 'waiting') return done({ status: 'waiting', text: 'The call waits.' });
      return done({ status: 'failed', text: reason.refused, errorClass: 'ToolError' });
    },
    async execute() {
      startedAt = performance.now();
      const timeoutMs = tool.ownsTimeout ? null : (tool.descriptor.timeoutMs ?? deps.defaultTimeoutMs);
      const end = await withDeadline<Json | null | undefined>(
        async (bodySignal) => {
          const context = { ...scope.context, signal: bodySignal };
          return tool.body === null ? tool.definition.execute?.(args, context) : tool.body(args, context, request);
        },
        timeoutMs,
        signal,
      );
      return done(await bodyEnd(end, tool, request, scope, hooks, deps));
    },
  };
};
