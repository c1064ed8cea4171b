import type { AskedHold, HoldAnswer } from './shared-holds.store.ts';

/** What a request is to get. */
export interface Wish {
  /** Null: nothing limits it, and nobody else has to know. */
  readonly hold: AskedHold | null;
}

/** Null: it goes on waiting. */
export type Verdict<W> = { readonly wish: W } | { readonly error: unknown } | null;

export interface AgreedHoldsDeps<R, S, W extends Wish> {
  /**
   * What each request gets where this stands against the quotas, one after another: who comes later finds what is given
   * to those before. `given` has been given since. `isFinal`: what is refused is refused.
   */
  verdicts(standing: S, requests: readonly R[], given: readonly W[], isFinal: boolean): ReadonlyMap<R, Verdict<W>>;
  ask(holds: readonly AskedHold[], requests: readonly R[]): Promise<HoldAnswer<S>>;
  /** Whether what is stored will do instead of what there is room for by now. */
  fits(stored: W, wish: W, attempt: number): boolean;
  give(wish: W): void;
  drop(holds: readonly AskedHold[]): void;
}

/** What the next guess is made from. */
export interface Known<S, W> {
  readonly standing: S;
  readonly given: readonly W[];
}

interface Round<R, S, W> {
  readonly known: Known<S, W>;
  readonly final: ReadonlyMap<R, Exclude<Verdict<W>, null>>;
  /** There was room for a request whose hold, or one of this size, was not asked for. */
  readonly isOpen: boolean;
}

// Each time the others of the store may have taken what was seen to be free. Then a request waits like others.
const mostAttempts = 5;

const isWish = <W>(verdict: Verdict<W>): verdict is { readonly wish: W } => verdict !== null && 'wish' in verdict;

const askOnce = async <R, S, W extends Wish>(
  { verdicts, ask, fits, give, drop }: AgreedHoldsDeps<R, S, W>,
  requests: readonly R[],
  known: Known<S, W> | undefined,
  attempt: number,
): Promise<Round<R, S, W>> => {
  const asked = new Map<R, { readonly wish: W; readonly hold: AskedHold }>();
  const guesses = known === undefined ? [] : verdicts(known.standing, requests, known.given, false);
  for (const [request, guess] of guesses)
    if (isWish(guess) && guess.wish.hold !== null) asked.set(request, { wish: guess.wish, hold: guess.wish.hold });
  const left = new Set([...asked.values()].map(({ hold }) => hold));
  try {
    const { standing, stored } = await ask([...left], requests);
    const final = new Map<R, Exclude<Verdict<W>, null>>();
    const given: W[] = [];
    let isOpen = false;
    const decide = (request: R, verdict: Verdict<W>): void => {
      if (!isWish(verdict)) {
        if (verdict !== null) final.set(request, verdict);
        return;
      }
      const own = asked.get(request);
      const isStored = own !== undefined && stored.has(own.hold.runId);
      const isFree = verdict.wish.hold === null;
      if (!isFree && !(isStored && fits(own.wish, verdict.wish, attempt))) {
        isOpen ||= own === undefined || isStored;
        return;
      }
      const wish = isFree ? verdict.wish : (own?.wish ?? verdict.wish);
      if (own !== undefined && !isFree) left.delete(own.hold);
      give(wish);
      given.push(wish);
      final.set(request, { wish });
    };
    for (const [request, verdict] of verdicts(standing, requests, [], true)) decide(request, verdict);
    return { known: { standing, given }, final, isOpen };
  } finally {
    // Nobody has them, or nobody knows whether they are stored.
    drop([...left]);
  }
};

/**
 * Requests of one tenant, decided with what the store says of all processes. What they will get is guessed from what was
 * known before, asked for, and given where the read that came with it leads to the same: a decision takes one round trip to
 * the database, and two where the guess was wrong.
 */
export const agreedHolds = async <R, S, W extends Wish>(
  deps: AgreedHoldsDeps<R, S, W>,
  requests: readonly R[],
  before: Known<S, W> | undefined,
): Promise<Pick<Round<R, S, W>, 'known' | 'final'>> => {
  const final = new Map<R, Exclude<Verdict<W>, null>>();
  let waiting = requests;
  let known = before;
  for (let attempt = 1; ; attempt += 1) {
    const round = await askOnce(deps, waiting, known, attempt);
    known = round.known;
    for (const [request, verdict] of round.final) final.set(request, verdict);
    waiting = waiting.filter((request) => !final.has(request));
    if (!round.isOpen || attempt === mostAttempts) return { known, final };
  }
};
