import type { ApiKeyScope, Role } from '../contract/authority.ts';
import type {
  ApiTable,
  OperationAudit,
  OperationInput,
  OperationReply,
  OperationTable,
} from '../contract/operation.ts';
import type { AnswerOnce } from './idempotency.ts';
import type { TraceParent } from './telemetry/trace-context.ts';

/** Who calls and with what authority; made in one place, from the credential. */
export interface Principal {
  readonly kind: 'Anonymous' | 'Token' | 'ApiKey' | 'Oidc' | 'Host';
  /** Null: authenticated without a role, refused wherever one is needed. */
  readonly role: Role | null;
  /** Null: every scope, the role alone limits. */
  readonly scopes: ReadonlySet<ApiKeyScope> | null;
  /** Name in `createdBy`, `updatedBy`, `canceledBy`; null for callers without identity. */
  readonly actor: string | null;
  /** Subject of a person; null for keys, tokens and anonymous callers. */
  readonly userId: string | null;
  readonly apiKey: { readonly id: string; readonly name: string } | null;
  /** Permissions that tools may require; null: all (shared token). */
  readonly permissions: ReadonlySet<string> | null;
  /** The service itself starts what a person would: what it opens is nobody's, even where others need an identity. */
  readonly unattended?: true;
  /** The protocol through which another system came. Left out: the API of the service itself. */
  readonly door?: Door;
}

/** A way in for other systems: nobody is asked there, and who came through it sees what it made itself, and no more. */
export interface Door {
  /** Such as `mcp`. */
  readonly source: string;
  /** This caller behind this door, as rows have it: tells two of them apart, and not who they are. */
  readonly key: string;
}

/** The caller after authentication: what the credential and tenant rules gave. */
export interface Caller {
  readonly principal: Principal;
  readonly tenantId: string;
}

/** Everything a handler may know about a call. */
export interface CallContext {
  readonly requestId: string;
  readonly tenantId: string;
  readonly principal: Principal;
  /** Aborted when the caller goes away. */
  readonly signal: AbortSignal;
  /** Body bytes as received, for fingerprints; null in process. */
  readonly rawBody: Uint8Array | null;
  readonly method: string;
  /** Path below the prefix, as called. */
  readonly path: string;
  /** The span that the call belongs to: the request's own where spans are exported, else the caller's; null without one. */
  readonly trace?: TraceParent | null | undefined;
  /** `performance.now()` when the request had come, the time to receive its body not counted. */
  readonly receivedAt?: number | undefined;
  /** What the operation declares about its audit entry. */
  readonly audit?: OperationAudit | undefined;
  /** Of an operation that declares idempotency; null: the request has no key. */
  readonly once?: AnswerOnce | null | undefined;
  /**
   * Counts the answer as an open stream of its caller. Asked before work that a refusal would leave without a reader; every
   * other stream is counted when its handler has returned. Throws `too-many-streams`.
   */
  readonly openStream?: (() => void) | undefined;
  /** Of an operation whose handler reads the body. */
  readonly readBody?: UnreadCall['readBody'] | undefined;
}

/** Who changes something, and what is declared about the entry that tells of it. */
export interface AuditedCall extends Pick<CallContext, 'tenantId'> {
  readonly principal: Pick<Principal, 'actor'>;
  readonly audit: OperationAudit;
}

/** A call of an operation that declares idempotency, which says when and whose the answer is that is kept. */
export interface IdempotentCall {
  readonly once: AnswerOnce | null;
}

/** A call of an operation whose handler reads the body: a signed one, or one with a protocol of its own. */
export interface UnreadCall {
  /** What was sent, to the byte. Throws `payload-too-large` for more than so many. */
  readonly readBody: (maxBytes: number) => Promise<Uint8Array>;
}

type ContextOf<O> = CallContext &
  (O extends { readonly audit: OperationAudit } ? AuditedCall : unknown) &
  (O extends { readonly idempotency: true } ? IdempotentCall : unknown) &
  (O extends { readonly signed: true } | { readonly ownProtocol: true } ? UnreadCall : unknown);

/** The handlers of a feature: one method per operation, same names. A missing or wrong one does not compile. */
export type Handlers<T extends OperationTable> = {
  readonly [K in keyof T]: (context: ContextOf<T[K]>, input: OperationInput<T[K]>) => Promise<OperationReply<T[K]>>;
};

export type ApiHandlers<T extends ApiTable> = { readonly [F in keyof T]: Handlers<T[F]> };
