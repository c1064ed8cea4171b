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
import { type CommandHost, covers, toNumber } from '../command-host.ts';

/** A counter that is not the sum of its records is a conflict of the store with itself. */
const differentExitCode = 5;

const periodOf = (option: unknown): QuotaPeriod | undefined => {
  if (option === undefined) return undefined;
  const period = quotaPeriods.find((name) => name.toLowerCase() === String(option).toLowerCase());
  if (period === undefined)
    throw new AcpError('validation-failed', `--period is Daily or Monthly, not "${String(option)}".`);
  return period;
};

const amountOf = (flag: string, option: unknown): number | null =>
  option === undefined ? null : toNumber(flag)(option);

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
  return {
    agentName: agentName === '' ? '(all)' : agentName,
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
    .description('set the quota of the tenant, or of an agent, for a period; omitted limits are unlimited')
    .requiredOption('--period <period>', 'Daily or Monthly')
    .option('--agent <name>', 'default: tenant-wide')
    .option('--max-runs <n>', 'runs of the period')
    .option('--max-tokens <n>', 'tokens of the period')
    .option('--max-cost <amount>', 'cost of the period, in the configured currency')
    .option('--disabled', 'store it without enforcing it');
  covers(command, 'quotas.save').action(
    host.act(async ({ print, connected }, { options }) => {
      const body = {
        agentName: options['agent'] === undefined ? null : String(options['agent']),
        period: periodOf(options['period']) ?? 'Daily',
        maxRuns: amountOf('--max-runs', options['maxRuns']),
        maxTokens: amountOf('--max-tokens', options['maxTokens']),
        maxCost: amountOf('--max-cost', options['maxCost']),
        enabled: options['disabled'] !== true,
      };
      const { body: saved } = await connected(({ client }) => client.quotas.save({ body }));
      await print(saved);
    }),
  );
};

const registerUsage = (quotas: Command, host: CommandHost): void => {
  const command = quotas
    .command('usage')
    .description('show usage and limits of the current periods')
    .option('--agent <name>', 'only this agent; empty: only tenant-wide quotas')
    .option('--period <period>', 'Daily or Monthly');
  covers(command, 'quotas.usage').action(
    host.act(async ({ terminal, globals, print, connected }, { options }) => {
      const period = periodOf(options['period']);
      const query = {
        ...(options['agent'] === undefined ? {} : { agentName: String(options['agent']) }),
        ...(period === undefined ? {} : { period }),
      };
      const { body } = await connected(({ client }) => client.quotas.usage({ query }));
      if (globals.json) return print(body);
      if (body.usage.length === 0) terminal.note('Nothing was counted in the current periods.');
      else await print(body.usage.map((row) => usageRow(row, body.definitions)));
      const [day, month] = [formatTime(body.dailyResetsAt), formatTime(body.monthlyResetsAt)];
      terminal.note(`Days begin anew ${day}, months ${month} (${body.timeZone}).`);
    }),
  );
};

const registerVerify = (quotas: Command, host: CommandHost): void => {
  const command = quotas
    .command('verify')
    .description(`compare the counters with the recorded runs; exit code ${differentExitCode} if they differ`);
  covers(command, 'quotas.verify').action(
    host.act(async ({ terminal, globals, print, connected }) => {
      const { body } = await connected(({ client }) => client.quotas.verify({}));
      if (globals.json) await print(body);
      else if (body.matches)
        terminal.note(`${body.countersChecked} counters are the sums of ${body.runsChecked} recorded runs.`);
      else {
        await print(differenceRows(body.differences));
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
