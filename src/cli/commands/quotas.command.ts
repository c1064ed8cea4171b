import type { Command } from 'commander';
import { AcpError } from '../../contract/errors.ts';
import type {
  QuotaDefinition,
  QuotaDifference,
  QuotaPeriod,
  QuotaUsageRecord,
} from '../../features/quotas/quotas.schema.ts';
import { quotaPeriods } from '../../features/quotas/quotas.schema.ts';
import { formatTime } from '../../text/format.ts';
import { type CommandHost, covers } from '../command-host.ts';
import { printReply } from '../output/print-reply.ts';
import { renderTable } from '../output/table.ts';

/** A counter that is not the sum of its records is a conflict of the store with itself. */
const differentExitCode = 5;

const periodOf = (given: unknown): QuotaPeriod | undefined => {
  if (given === undefined) return undefined;
  const found = quotaPeriods.find((period) => period.toLowerCase() === String(given).toLowerCase());
  if (found === undefined)
    throw new AcpError('validation-failed', `--period is Daily or Monthly, not "${String(given)}".`);
  return found;
};

const amountOf = (flag: string, given: unknown): number | null => {
  if (given === undefined) return null;
  const amount = Number(given);
  if (String(given).trim() === '' || !Number.isFinite(amount))
    throw new AcpError('validation-failed', `${flag} must be a number, not "${String(given)}".`);
  return amount;
};

/** `12 of 100`; the rule beside what was used, where there is one. */
const against = (used: number, limit: number | null | undefined): string =>
  limit === null || limit === undefined ? String(used) : `${used} of ${limit}`;

const usageRow = (row: QuotaUsageRecord, rules: readonly QuotaDefinition[]) => {
  const rule = rules.find(
    ({ agentName, period, enabled }) => enabled && (agentName ?? '') === row.agentName && period === row.period,
  );
  return {
    agentName: row.agentName === '' ? '(all)' : row.agentName,
    period: row.period,
    since: row.periodStart,
    runs: against(row.runs, rule?.maxRuns),
    tokens: against(row.tokens, rule?.maxTokens),
    cost: against(row.cost, rule?.maxCost),
  };
};

const differenceRow = ({ agentName, period, periodStart, counted, recorded }: QuotaDifference) => {
  const both = (name: 'runs' | 'tokens' | 'cost'): string =>
    counted[name] === recorded[name] ? String(counted[name]) : `${counted[name]}, recorded ${recorded[name]}`;
  const scope = agentName === '' ? '(all)' : agentName;
  return {
    agentName: scope,
    period,
    since: periodStart,
    runs: both('runs'),
    tokens: both('tokens'),
    cost: both('cost'),
  };
};

const differenceRows = (differences: readonly QuotaDifference[]): object[] => {
  if (!differences.some(({ runsDeleted }) => runsDeleted)) return differences.map(differenceRow);
  return differences.map((difference) => ({
    ...differenceRow(difference),
    because: difference.runsDeleted ? 'runs were deleted' : '',
  }));
};

const registerSet = (quotas: Command, host: CommandHost): void => {
  const command = quotas
    .command('set')
    .description('set the quota of the tenant, or of an agent, for a period; limits that are left out are none')
    .requiredOption('--period <period>', 'Daily or Monthly')
    .option('--agent <name>', 'default: the whole tenant')
    .option('--max-runs <n>', 'runs of the period')
    .option('--max-tokens <n>', 'tokens of the period')
    .option('--max-cost <amount>', 'cost of the period, in the configured currency')
    .option('--disabled', 'keep it without enforcing it');
  covers(command, 'quotas.save').action(
    host.act(async ({ terminal, globals, connected }, { options }) => {
      const body = {
        agentName: options['agent'] === undefined ? null : String(options['agent']),
        period: periodOf(options['period']) ?? 'Daily',
        maxRuns: amountOf('--max-runs', options['maxRuns']),
        maxTokens: amountOf('--max-tokens', options['maxTokens']),
        maxCost: amountOf('--max-cost', options['maxCost']),
        enabled: options['disabled'] !== true,
      };
      const { body: saved } = await connected(({ client }) => client.quotas.save({ body }));
      return printReply(terminal, saved, { json: globals.json });
    }),
  );
};

const registerUsage = (quotas: Command, host: CommandHost): void => {
  const command = quotas
    .command('usage')
    .description('what was used in the current periods, beside its limits')
    .option('--agent <name>', 'only this agent; empty: only the whole tenant')
    .option('--period <period>', 'Daily or Monthly');
  covers(command, 'quotas.usage').action(
    host.act(async ({ terminal, globals, connected }, { options }) => {
      const period = periodOf(options['period']);
      const query = {
        ...(options['agent'] === undefined ? {} : { agentName: String(options['agent']) }),
        ...(period === undefined ? {} : { period }),
      };
      const { body } = await connected(({ client }) => client.quotas.usage({ query }));
      if (globals.json) return printReply(terminal, body, { json: true });
      if (body.usage.length === 0) terminal.note('Nothing was counted in the current periods.');
      else {
        const rows = body.usage.map((row) => usageRow(row, body.definitions));
        const { style, width } = terminal;
        await terminal.write(
          renderTable(rows, ['agentName', 'period', 'since', 'runs', 'tokens', 'cost'], { style, width }),
        );
      }
      const [day, month] = [formatTime(body.dailyResetsAt), formatTime(body.monthlyResetsAt)];
      terminal.note(`Days begin anew ${day}, months ${month} (${body.timeZone}).`);
      return undefined;
    }),
  );
};

const registerVerify = (quotas: Command, host: CommandHost): void => {
  const command = quotas
    .command('verify')
    .description(`compare the counters with the recorded runs; exit code ${differentExitCode} when they differ`);
  covers(command, 'quotas.verify').action(
    host.act(async ({ terminal, globals, connected }) => {
      const { body } = await connected(({ client }) => client.quotas.verify({}));
      if (globals.json) await printReply(terminal, body, { json: true });
      else if (body.matches)
        terminal.note(`${body.countersChecked} counters are the sums of ${body.runsChecked} recorded runs.`);
      else {
        await printReply(terminal, differenceRows(body.differences), { json: false });
        const isExplained = body.differences.every(({ runsDeleted }) => runsDeleted);
        terminal.note(
          isExplained
            ? 'Runs of these periods were deleted by retention or an erasure: the counters have them, the records do not.'
            : 'The counters are not the sums of the recorded runs.',
        );
      }
      return body.matches ? 0 : differentExitCode;
    }),
  );
};

/** `acp quotas`: what a generated command cannot say well. */
export const registerQuotas = (quotas: Command, host: CommandHost): void => {
  registerSet(quotas, host);
  registerUsage(quotas, host);
  registerVerify(quotas, host);
};
