import type { Statement } from '../../db/statement.ts';
import type { QuotaUse } from '../../engine/control/index.ts';
import { type CountedRoot, monthOf } from './counted-roots.ts';

export interface Amounts extends QuotaUse {
  readonly runs: number;
  readonly mostTokens: number;
  readonly mostCostMicros: number;
  /** Unix milliseconds. */
  readonly at: number;
}

const sumOf = (a: Amounts, b: Amounts): Amounts => ({
  runs: a.runs + b.runs,
  tokens: a.tokens + b.tokens,
  costMicros: a.costMicros + b.costMicros,
  mostTokens: Math.max(a.mostTokens, b.mostTokens),
  mostCostMicros: Math.max(a.mostCostMicros, b.mostCostMicros),
  at: Math.max(a.at, b.at),
});

type Counter = readonly [tenantId: string, agentName: string, period: string, start: string];

/** The four counters of a run, in the order in which they are locked: tenant and agent, day and month. */
const countersOf = ({ tenantId, agentName, day }: CountedRoot): readonly Counter[] => [
  [tenantId, '', 'Daily', day],
  [tenantId, '', 'Monthly', monthOf(day)],
  [tenantId, agentName, 'Daily', day],
  [tenantId, agentName, 'Monthly', monthOf(day)],
];

const bound = ({ runs, tokens, costMicros, mostTokens, mostCostMicros, at }: Amounts): readonly number[] => [
  runs,
  tokens,
  costMicros,
  mostTokens,
  mostCostMicros,
  at,
];

/** One statement for the four counters of runs. `textOf`: its text for so many counters. */
export class Booking implements Statement {
  readonly sql: string;
  readonly isShared = true;
  readonly root: CountedRoot;
  readonly amounts: Amounts;
  readonly textOf: (counters: number) => string;

  constructor(textOf: (counters: number) => string, root: CountedRoot, amounts: Amounts) {
    this.sql = textOf(4);
    this.textOf = textOf;
    this.root = root;
    this.amounts = amounts;
  }

  get parameters(): readonly unknown[] {
    const { tenantId, agentName, day } = this.root;
    const month = monthOf(day);
    const amounts = bound(this.amounts);
    return [
      ...[tenantId, '', 'Daily', day, ...amounts],
      ...[tenantId, '', 'Monthly', month, ...amounts],
      ...[tenantId, agentName, 'Daily', day, ...amounts],
      ...[tenantId, agentName, 'Monthly', month, ...amounts],
    ];
  }

  plus(other: Booking): Booking {
    return new Booking(this.textOf, this.root, sumOf(this.amounts, other.amounts));
  }
}

/** The same for a root that nobody here has opened: its row says where it counts. */
export class Settlement implements Statement {
  readonly sql: string;
  readonly parameters: readonly unknown[];
  readonly isShared = true;
  readonly tenantId: string;

  constructor(sql: string, parameters: readonly unknown[], tenantId: string) {
    this.sql = sql;
    this.parameters = parameters;
    this.tenantId = tenantId;
  }
}

/** What a booking has crossed; to be asked after it. */
class Question implements Statement {
  readonly sql: string;
  readonly parameters: readonly unknown[];
  readonly isShared = true;
  readonly root: CountedRoot;

  constructor({ sql: text, parameters }: Statement, root: CountedRoot) {
    this.sql = text;
    this.parameters = parameters;
    this.root = root;
  }
}

/**
 * One booking for all of a transaction that count in the same place, and one question about it: together they cross a
 * threshold, and the run that is named is one of theirs. Both come last, since their place among the others does not matter.
 */
export const condensed = (statements: readonly Statement[]): readonly Statement[] => {
  const bookings = new Map<CountedRoot, Booking>();
  const questions = new Map<CountedRoot, Question>();
  const others = statements.filter((statement) => {
    if (statement instanceof Booking)
      bookings.set(statement.root, bookings.get(statement.root)?.plus(statement) ?? statement);
    else if (statement instanceof Question) questions.set(statement.root, statement);
    else return true;
    return false;
  });
  return [...others, ...bookings.values(), ...questions.values()];
};

const keyOf = (counter: Counter): string => counter.join('\u0000');

const inOrder = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** One statement for all counters, each once, in the order of their keys. */
const booked = (bookings: readonly Booking[]): readonly Statement[] => {
  const [first] = bookings;
  if (first === undefined || bookings.length === 1) return bookings;
  const sums = new Map<string, { readonly counter: Counter; readonly amounts: Amounts }>();
  for (const { root, amounts } of bookings)
    for (const counter of countersOf(root)) {
      const key = keyOf(counter);
      const sum = sums.get(key);
      sums.set(key, { counter, amounts: sum === undefined ? amounts : sumOf(sum.amounts, amounts) });
    }
  const rows = [...sums].sort(([a], [b]) => inOrder(a, b)).map(([, row]) => row);
  return [
    {
      sql: first.textOf(rows.length),
      parameters: rows.flatMap(({ counter, amounts }) => [...counter, ...bound(amounts)]),
      isShared: true,
    },
  ];
};

/**
 * Tenant by tenant, bookings first: each begins with the counters of its tenant, which so keep out whoever else books there
 * until all of this is committed. Two settlements of one tenant and of different days are not in order; the database ends
 * one of two that meet, which is written again.
 */
const byTenant = (bookings: readonly Booking[], settlements: readonly Settlement[]): readonly Statement[] => {
  const tenants = new Set([...bookings.map(({ root }) => root.tenantId), ...settlements.map((one) => one.tenantId)]);
  return [...tenants]
    .sort(inOrder)
    .flatMap((tenant) => [
      ...booked(bookings.filter(({ root }) => root.tenantId === tenant)),
      ...settlements.filter(({ tenantId }) => tenantId === tenant),
    ]);
};

/**
 * The same where other processes book in the same counters: whoever locks several does so in one order, so that no two
 * transactions wait for each other. Whatever else is shared follows, when the counters are locked.
 */
export const orderlyCondensed = (statements: readonly Statement[]): readonly Statement[] => {
  const own: Statement[] = [];
  const shared: Statement[] = [];
  const bookings: Booking[] = [];
  const settlements: Settlement[] = [];
  const all = condensed(statements);
  for (const statement of all)
    if (statement instanceof Booking) bookings.push(statement);
    else if (statement instanceof Settlement) settlements.push(statement);
    else if (statement.isShared === true) shared.push(statement);
    else own.push(statement);
  if (bookings.length + settlements.length === 0) return all;
  return [...own, ...(settlements.length === 0 ? booked(bookings) : byTenant(bookings, settlements)), ...shared];
};

export const withNotices = (booking: Statement, notices: readonly Statement[]): readonly Statement[] =>
  booking instanceof Booking
    ? [booking, ...notices.map((notice) => new Question(notice, booking.root))]
    : [booking, ...notices.map((notice) => ({ ...notice, isShared: true }))];
