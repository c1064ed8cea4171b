import { AcpError } from '../../contract/errors.ts';
import type { CallContext } from '../context.ts';

/** Whose visibility the host's code decides beside roles and scopes: runs and what belongs to them. */
export type RunResource = 'Run' | 'Session' | 'Attachment' | 'Approval';

/** What is asked for. `Start` covers replay, resume and respond, which name the run that they go on from. */
export type RunAction =
  | 'Start'
  | 'List'
  | 'Read'
  | 'Cancel'
  | 'Feedback'
  | 'Judge'
  | 'Upload'
  | 'Change'
  | 'Delete'
  | 'Decide';

/** What an action is about; what does not apply or is not known is left out. */
export interface RunTarget {
  readonly resource: RunResource;
  /** The one resource. Left out where there is none yet or there are many: Start, List, Upload. */
  readonly id?: string | null;
  readonly agentName?: string | null;
  readonly sessionId?: string | null;
  /** The run that the resource belongs to; for Start the run that is replayed, resumed or responded to. */
  readonly runId?: string | null;
  /** The person to whom the run is attributed. */
  readonly userId?: string | null;
}

/**
 * The host's decision about one action (RUN-39, SEC-22). Asked after role and scope, before anything is written and
 * before any other answer could tell whether the resource exists.
 */
export interface RunAuthorization {
  /** For one resource: false is answered exactly as an id that does not exist. */
  allows(context: CallContext, action: RunAction, target: RunTarget): Promise<boolean>;
  /**
   * For Start, List and Upload: refuses with 403 `run-not-allowed`. A list is refused whole, never filtered. Null: there is
   * nobody to ask.
   */
  require(context: CallContext, action: RunAction, target: RunTarget): Promise<void> | null;
}

/** The decision of a service whose host has none: roles, scopes and tenants alone decide. */
export const openRunAuthorization: RunAuthorization = {
  allows: async () => true,
  require: () => null,
};

const refusals: Readonly<Partial<Record<RunAction, string>>> = {
  Start: 'The host does not allow this run.',
  List: 'The host does not allow this list.',
  Upload: 'The host does not allow this upload.',
};

export const runAuthorizationOf = (allows: RunAuthorization['allows']): RunAuthorization => ({
  allows,
  async require(context, action, target) {
    if (await allows(context, action, target)) return;
    throw new AcpError('run-not-allowed', refusals[action] ?? 'The host does not allow this.');
  },
});
