import type { CallerRequest } from '../core/caller/caller-request.ts';
import type { ClientAddress } from '../core/caller/client-address.ts';
import type { RequiredAuthority } from '../core/caller/incoming-call.ts';
import type { Clock } from '../core/clock.ts';
import type { LoadedConfig } from '../core/config/index.ts';
import type { Caller } from '../core/context.ts';
import type { Dispatch } from '../core/dispatch.ts';
import type { Logger } from '../core/logger.ts';
import type { Telemetry } from '../core/telemetry/telemetry.ts';
import type { HealthReport } from '../features/platform/index.ts';

export interface AppOptions {
  readonly config: LoadedConfig;
  readonly log?: Logger;
  /**
   * `local` serves one command in process: no worker, no listener. `preview` does the same without writing anything;
   * where there is no store yet, it sees an empty one.
   */
  readonly mode: 'serve' | 'local' | 'preview';
  readonly cwd?: string;
  /** Aborted: the start is given up while it waits for the store. */
  readonly stopping?: AbortSignal;
  /** Default: the time of this machine. */
  readonly clock?: Clock;
  /**
   * `Clock`: the store goes by that clock, too. For tests that move the time of all; default: a store on a server has its
   * own.
   */
  readonly storeTime?: 'Clock' | 'Server';
}

export interface App {
  readonly dispatch: Dispatch;
  /** The caller of commands in process: who can open the store has full authority in the default tenant. */
  readonly localCaller: Caller;
  readonly config: LoadedConfig;
  readonly log: Logger;
  /** The caller of a transport's request. For an operation that is open to everybody, no request is refused. */
  authenticate(request: CallerRequest, required?: RequiredAuthority): Caller | Promise<Caller>;
  /** Where a request came from, for limits and logs; see `Host:TrustedProxies`. */
  readonly clientAddress: ClientAddress;
  health(): Promise<HealthReport>;
  readonly telemetry: Telemetry;
  /** Called once the service listens: tells other processes where, and lets the worker take jobs. */
  started(url: string): void;
  /** Starts no more runs and waits for those in progress, at most `Drain:Timeout`; the rest ends as `shutdown`. */
  drain(): Promise<void>;
  /** The runs that a drain would wait for now, and for how long at most; 0 ms: not at all. */
  drainWait(): { readonly runs: number; readonly atMostMs: number };
  close(): Promise<void>;
  describe(): AppDescription;
}

/** What `acp doctor` tells of the parts that the configuration brought. */
export interface AppDescription {
  readonly pendingMigrations: readonly string[];
  readonly providers: readonly { readonly name: string; readonly kind: string }[];
  readonly tools: readonly string[];
  readonly modules: readonly string[];
  readonly codeAgents: readonly string[];
  readonly access: {
    /** Callers of this machine are served without a credential. */
    readonly anonymous: boolean;
    /** A module decides who may start and see runs. */
    readonly runAuthorization: boolean;
  };
}
