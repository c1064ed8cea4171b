import type { Json } from '../../contract/schema.ts';
import { canonicalJson } from '../../core/documents/canonical-json.ts';
import { nestsTooDeep } from '../../core/documents/json-depth.ts';
import { parseArguments } from './arguments.ts';
import { authorizeCall } from './authorize.ts';
import { type CallEnd, canceled, invalid, runBody, thrown } from './call-body.ts';
import { openCallScope } from './call-scope.ts';
import type { RegisteredTool } from './registry.ts';
import { cutText } from './tool.ts';
import type { ToolCallDeps, ToolCallHooks, ToolCallRequest, ToolOutcome } from './tool-call.ts';

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

/** Why a call that could be made is not: somebody else has the next word, its turn has failed, or it was refused. */
type CallStop = 'waiting' | 'canceled' | { readonly refused: string };

/** A call that is allowed and whose arguments fit. Nothing of it has happened. Design: docs/design/tools.md. */
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
  const done = (end: CallEnd): ToolOutcome => {
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

  if (args === undefined)
    return done(
      invalid(
        nestsTooDeep(request.argumentsText)
          ? 'The arguments are nested too deeply.'
          : 'The arguments are not valid JSON.',
      ),
    );
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
      return done(await runBody(tool, args, request, scope, hooks, deps));
    },
  };
};
