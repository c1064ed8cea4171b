import { endsWithin } from '../../core/time-limit.ts';
import type { StoreSharing } from './store-sharing.ts';

export interface HealthReport {
  /** `Draining` comes before any other: whoever asks should go elsewhere. */
  readonly status: 'Healthy' | 'Degraded' | 'Unhealthy' | 'Draining';
}

export interface HealthDeps {
  /** A small read of the store; rejects when it cannot be reached. */
  readonly probeStore: () => Promise<void>;
  /** Why the store takes no writes; null: it does. */
  readonly storeTrouble: () => string | null;
  /** True while migrations are pending. */
  readonly migrating: boolean;
  readonly lifecycle: { readonly draining: boolean };
  /** True while calls of model providers fail, as far as anybody has looked. */
  readonly modelsDegraded: () => boolean;
  /** Null: no other process has the store. */
  readonly sharing: StoreSharing | null;
  readonly now: () => number;
}

// Probes of an orchestrator come in bursts; one look at the store serves all of a second.
const probeEveryMs = 1000;
const probeTimeoutMs = 2000;

/** Whether the store answers, looked at no more than once a second and for no longer than two. */
export const createHealth = ({
  probeStore,
  storeTrouble,
  migrating,
  lifecycle,
  modelsDegraded,
  sharing,
  now,
}: HealthDeps): (() => Promise<HealthReport>) => {
  let checkedAt = Number.NEGATIVE_INFINITY;
  let reachable: Promise<boolean> = Promise.resolve(true);

  const probe = (): Promise<boolean> => endsWithin(probeTimeoutMs, probeStore()).catch(() => false);

  /** What would be decided by copies that are too old is refused; another process may have them. */
  const isStale = (): boolean => sharing !== null && sharing.staleState().length > 0;
  const isApart = (): boolean =>
    sharing !== null &&
    (!sharing.hearsOthers() ||
      sharing.isClockOff() ||
      sharing.missingPartitions().length > 0 ||
      (sharing.replica()?.reason ?? null) !== null);

  return async () => {
    const passed = now() - checkedAt;
    // A clock that was set back says nothing about how old the answer is.
    if (passed >= probeEveryMs || passed < 0) {
      checkedAt = now();
      reachable = probe();
    }
    const trouble = storeTrouble();
    // This process may still read a file that was moved; whoever takes over cannot.
    const works = !migrating && trouble !== 'moved' && (await reachable) && !isStale();
    if (lifecycle.draining) return { status: 'Draining' };
    const isDegraded = trouble !== null || modelsDegraded() || isApart();
    return { status: !works ? 'Unhealthy' : isDegraded ? 'Degraded' : 'Healthy' };
  };
};
