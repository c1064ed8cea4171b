import type { Json } from '../../contract/schema.ts';
import { principalJson } from '../../core/caller/principal-json.ts';
import type { Principal } from '../../core/context.ts';
import { withDeadline } from './deadline.ts';
import { cutText, maxToolErrorLength, type ToolContext, type ToolDescriptor } from './tool.ts';
import type { ToolCallDeps, ToolCallRequest } from './tool-call.ts';

/** A slower answer denies: a call that waits for a policy holds a run, and a broken policy must not open tools. */
const authorizationTimeoutMs = 5000;

const deniedMessage = 'This call is not allowed.';

/** Null: the call may go on. Otherwise the text for the model. */
type Denial = string | null;

const byPermission = (tool: ToolDescriptor, principal: Principal): Denial => {
  const needed = tool.requiredPermission;
  if (needed === null || principal.permissions === null || principal.permissions.has(needed)) return null;
  return `This call needs the permission ${needed}.`;
};

/** Asks the host's authorizer or, without one, compares permissions. An authorizer that fails or is slow denies. */
export const authorizeCall = async (
  tool: ToolDescriptor,
  args: Json,
  context: Omit<ToolContext, 'signal'>,
  request: ToolCallRequest,
  deps: ToolCallDeps,
): Promise<Denial> => {
  const { authorizer } = deps;
  if (authorizer === null) return byPermission(tool, request.principal);
  const principal = principalJson(request.principal);
  const end = await withDeadline(
    () => authorizer.authorize({ tool, arguments: args, context, principal }),
    authorizationTimeoutMs,
    request.signal,
  );
  if (end.kind === 'returned') {
    // Only a plain true opens the tool: a module is not type-checked at run time.
    const verdict = end.value as { readonly allowed?: unknown; readonly reason?: unknown } | null | undefined;
    if (verdict?.allowed === true) return null;
    const reason = typeof verdict?.reason === 'string' ? verdict.reason.toWellFormed() : '';
    return reason.trim() === '' ? deniedMessage : cutText(reason, maxToolErrorLength);
  }
  if (end.kind !== 'canceled')
    deps.log.warn(
      {
        requestId: request.requestId,
        runId: request.run.runId,
        tool: tool.name,
        ...(end.kind === 'threw' ? { err: end.error } : { timeoutMs: end.timeoutMs }),
      },
      'The tool authorizer failed, so the call was denied',
    );
  return deniedMessage;
};
