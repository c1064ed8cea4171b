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

const guardText = (report: Findings<'guard'>, table: Table): string =>
  [
    `Would have blocked ${times(report.runsBlocked, 'run')} and masked text in ${report.runsMasked}; ${times(report.textsInspected, 'text')} inspected.\n`,
    table('By rule', report.byRule, ['rule', 'action', 'runs', 'texts']),
    table(
      'Where',
      report.findings,
      ['runId', 'agentName', 'action', 'rule', 'source', 'toolName', 'texts'],
      report.findingsOmitted,
    ),
  ].join('');

const ruleText = (report: Findings<'rule'>, table: Table): string =>
  [
    `Of ${times(report.callsExamined, 'call')}, ${report.wouldApprove} would have run unasked and ${report.wouldAsk} would have asked; ${report.stillAsked} would still ask, ${report.unchanged} as before.\n`,
    table('By tool', report.byTool, ['toolName', 'wouldApprove', 'wouldAsk', 'stillAsked', 'unchanged']),
    table(
      'Calls',
      report.calls,
      ['runId', 'agentName', 'toolName', 'toolCallId', 'verdict', 'ruleIndex'],
      report.callsOmitted,
    ),
  ].join('');

const shownQuota = <T extends { readonly quotaAgentName: string | null }>(row: T) => ({
  ...row,
  quota: row.quotaAgentName ?? '(all)',
});

const quotaText = (report: Findings<'quota'>, table: Table): string =>
  [
    `Would have refused ${times(report.refused, 'run')} and held ${report.held} back until others ended (${report.timeZone}).\n`,
    table(
      'Refused and held',
      report.refusals.map((row) => ({ ...shownQuota(row), at: formatTime(row.at) })),
      ['runId', 'agentName', 'at', 'outcome', 'quota', 'period', 'metric', 'used', 'limit'],
      report.refusalsOmitted,
    ),
    table(
      'Thresholds',
      report.thresholds.map((row) => ({ ...shownQuota(row), at: formatTime(row.at) })),
      ['runId', 'at', 'percent', 'quota', 'period', 'periodStart', 'metric'],
      report.thresholdsOmitted,
    ),
  ].join('');

const priceText = (report: Findings<'price'>, table: Table): string => {
  const currency = report.currency === null ? '' : ` ${report.currency}`;
  return [
    `${times(report.runsCompared, 'run')} cost ${report.oldCost}${currency} and would cost ${report.newCost}${currency}; ${report.runsChanged} change.\n`,
    report.runsNewlyPriced === 0
      ? ''
      : `${times(report.runsNewlyPriced, 'run')} without a cost would cost ${report.newlyPricedCost}${currency}.\n`,
    report.runsWithoutPrice === 0 ? '' : `${times(report.runsWithoutPrice, 'run')} would have no price.\n`,
    table('By model', report.byModel, ['modelId', 'modelProvider', 'source', 'runs', 'oldCost', 'newCost']),
    table('By agent', report.byAgent, ['agentName', 'runs', 'oldCost', 'newCost']),
    table(
      'Largest changes',
      report.changes,
      ['runId', 'agentName', 'modelId', 'oldCost', 'newCost', 'difference'],
      report.changesOmitted,
    ),
    table(
      'Without a price',
      report.withoutPrice,
      ['runId', 'agentName', 'modelProvider', 'modelId'],
      report.withoutPriceOmitted,
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
