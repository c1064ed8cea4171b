import type { CallContext, Principal } from '../context.ts';

/** Who a run is for: decided by the server, never by the body of a request. */
export interface RunAttribution {
  readonly userId: string | null;
  /** Null: none. */
  readonly labels: Readonly<Record<string, string>> | null;
}

/** The run that is about to start. */
export interface AttributedStart {
  readonly agentName: string;
  readonly sessionId: string | null;
}

export interface Attribution {
  /** Throws `attribution-invalid` for one beyond the limits, `identity-unavailable` when the host cannot tell. */
  of(context: CallContext, start: AttributedStart): RunAttribution | Promise<RunAttribution>;
}

export const maxLabels = 8;
export const maxLabelKeyLength = 64;
export const maxLabelValueLength = 256;

/** What the credential alone says. */
export const credentialAttribution = ({ userId, apiKey }: Principal): RunAttribution => ({
  userId,
  labels: apiKey === null ? null : { apiKey: apiKey.name.slice(0, maxLabelValueLength) },
});
