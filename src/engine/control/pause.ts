import type { Json } from '../../contract/schema.ts';
import type { ClientToolCall, PendingToolApproval, ToolApprovalPresentation } from '../../contract/tool-approval.ts';
import { canonicalJson } from '../../core/documents/canonical-json.ts';
import type { ModelToolCall } from '../../providers/models/model-provider.ts';
import { eventPayload, type PayloadSettings, recordedPayload } from '../record/index.ts';
import type { ToolQuestion } from '../tools/index.ts';

/** A call that nothing has been done about: a person decides it, or the caller's own program executes it. */
export interface WaitingCall {
  readonly kind: 'approval' | 'client' | 'question';
  readonly call: ModelToolCall;
  readonly idempotencyKey: string;
  /** Of an approval or a question; a client-side call is named by the id of its call. */
  readonly requestId: string;
  /** Checked and canonical. */
  readonly arguments: Json;
  readonly presentation: ToolApprovalPresentation | null;
  /** Of a question, with what the call goes on with: of several questions of a call the first one has that. */
  readonly asked?: { readonly question: ToolQuestion; readonly state: string | null };
}

/** Why a run closes before its turn is over. */
export interface Pause {
  readonly status: 'AwaitingApproval' | 'AwaitingInput';
  readonly calls: readonly WaitingCall[];
}

/** The calls as their events and answers carry them; approvals without what may not be recorded. */
export const waitingApprovals = (pause: Pause, settings: PayloadSettings, cuts: boolean): PendingToolApproval[] =>
  pause.status !== 'AwaitingApproval'
    ? []
    : pause.calls.map(({ requestId, call, arguments: args, presentation }) => {
        const payload = recordedPayload(canonicalJson(args), cuts ? settings : { ...settings, maxPayloadLength: 0 });
        return {
          requestId,
          toolCallId: call.toolCallId,
          toolName: call.toolName,
          arguments: eventPayload(payload),
          presentation,
          ...(payload.truncated ? { truncated: true } : {}),
        };
      });

const elicitationOf = ({ mode, message, requestedSchema, url }: ToolQuestion) => ({
  mode,
  message,
  requestedSchema,
  url,
});

/** The calls for the client's program, always whole. */
export const waitingClientCalls = (pause: Pause): ClientToolCall[] =>
  pause.status !== 'AwaitingInput'
    ? []
    : pause.calls.map(({ requestId, call, arguments: args, asked }) => ({
        callId: requestId,
        toolName: call.toolName,
        arguments: args,
        ...(asked === undefined ? {} : { elicitation: elicitationOf(asked.question) }),
      }));

/**
 * Questions first, since their calls were made and must not begin anew; then approvals. What is left of the same turn is asked
 * for by the run that brings the answers.
 */
export const pauseOf = (waiting: readonly WaitingCall[]): Pause | null => {
  const approvals = waiting.filter(({ kind }) => kind === 'approval');
  const others = waiting.filter(({ kind }) => kind !== 'approval');
  if (waiting.some(({ kind }) => kind === 'question')) return { status: 'AwaitingInput', calls: others };
  if (approvals.length > 0) return { status: 'AwaitingApproval', calls: approvals };
  return waiting.length > 0 ? { status: 'AwaitingInput', calls: waiting } : null;
};
