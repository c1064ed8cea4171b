import type { PolicyTestReport } from '../../features/policy-tests/policy-tests.schema.ts';
import { formatTime } from '../../text/format.ts';
import { renderTable } from './table.ts';
import type { Terminal } from './terminal.ts';

type Findings<K extends 'guard' | 'rule' | 'quota' | 'price'> = NonNullable<PolicyTestReport[K]>;
type Table = (title: string, rows: readonly object[], columns: readonly string[], omitted?: number) => string;

const tables =
  ({ style, width }: Terminal): Table =>
  (title, rows, columns, omitted = 0) => {
    if (rows.length === 0) return '';
    const more = omitted === 0 ? '' : `  … and ${omitted} more (--take)\n`;
    return `\n${style.bold(title)}\n${renderTable(rows, columns, { style, width })}${more}`;
  };

const times = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;

const guardText = (found: Findings<'guard'>, table: Table): string =>
  [
    `Would have blocked ${times(found.runsBlocked, 'run')} and masked text in ${found.runsMasked}; ${times(found.textsInspected, 'text')} inspected.\n`,
    table('By rule', found.byRule, ['rule', 'action', 'runs', 'texts']),
    table(
      'Where',
      found.findings,
      ['runId', 'agentName', 'action', 'rule', 'source', 'toolName', 'texts'],
      found.findingsOmitted,
    ),
  ].join('');

const ruleText = (found: Findings<'rule'>, table: Table): string =>
  [
    `Of ${times(found.callsExamined, 'call')}, ${found.wouldApprove} would have run unasked and ${found.wouldAsk} would have asked; ${found.stillAsked} would still ask, ${found.unchanged} as before.\n`,
    table('By tool', found.byTool, ['toolName', 'wouldApprove', 'wouldAsk', 'stillAsked', 'unchanged']),
    table(
      'Calls',
      found.calls,
      ['runId', 'agentName', 'toolName', 'toolCallId', 'verdict', 'ruleIndex'],
      found.callsOmitted,
    ),
  ].join('');

const shownQuota = <T extends { readonly quotaAgentName: string | null }>(row: T) => ({
  ...row,
  quota: row.quotaAgentName ?? '(all)',
});

const quotaText = (found: Findings<'quota'>, table: Table): string =>
  [
    `Would have refused ${times(found.refused, 'run')} and held ${found.held} back until others ended (${found.timeZone}).\n`,
    table(
      'Refused and held',
      found.refusals.map((row) => ({ ...shownQuota(row), at: formatTime(row.at) })),
      ['runId', 'agentName', 'at', 'outcome', 'quota', 'period', 'metric', 'used', 'limit'],
      found.refusalsOmitted,
    ),
    table(
      'Thresholds',
      found.thresholds.map((row) => ({ ...shownQuota(row), at: formatTime(row.at) })),
      ['runId', 'at', 'percent', 'quota', 'period', 'periodStart', 'metric'],
      found.thresholdsOmitted,
    ),
  ].join('');

const priceText = (found: Findings<'price'>, table: Table): string => {
  const currency = found.currency === null ? '' : ` ${found.currency}`;
  return [
    `${times(found.runsCompared, 'run')} cost ${found.oldCost}${currency} and would cost ${found.newCost}${currency}; ${found.runsChanged} change.\n`,
    found.runsNewlyPriced === 0
      ? ''
      : `${times(found.runsNewlyPriced, 'run')} without a cost would cost ${found.newlyPricedCost}${currency}.\n`,
    found.runsWithoutPrice === 0 ? '' : `${times(found.runsWithoutPrice, 'run')} would have no price.\n`,
    table('By model', found.byModel, ['modelId', 'modelProvider', 'source', 'runs', 'oldCost', 'newCost']),
    table('By agent', found.byAgent, ['agentName', 'runs', 'oldCost', 'newCost']),
    table(
      'Largest changes',
      found.changes,
      ['runId', 'agentName', 'modelId', 'oldCost', 'newCost', 'difference'],
      found.changesOmitted,
    ),
    table(
      'Without a price',
      found.withoutPrice,
      ['runId', 'agentName', 'modelProvider', 'modelId'],
      found.withoutPriceOmitted,
    ),
  ].join('');
};

/** A report as people read it: one sentence, tables below it, and what could not be looked at. */
export const policyReportText = (report: PolicyTestReport, terminal: Terminal): string => {
  const table = tables(terminal);
  const { guard, rule, quota, price } = report;
  const head = `${times(report.runsExamined, 'run')} from ${formatTime(report.since)} to ${formatTime(report.until)}.\n`;
  const gaps = report.notEvaluated.map((gap) => ({ ...gap, examples: gap.sampleRunIds.join(' ') }));
  return [
    head,
    guard === undefined ? '' : guardText(guard, table),
    rule === undefined ? '' : ruleText(rule, table),
    quota === undefined ? '' : quotaText(quota, table),
    price === undefined ? '' : priceText(price, table),
    table('Not looked at', gaps, ['part', 'reason', 'count', 'examples']),
  ].join('');
};
