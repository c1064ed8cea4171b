import type { Command } from 'commander';
import { AcpError } from '../../contract/errors.ts';
import { parseDuration } from '../../core/config/duration.ts';
import type { PolicyTestReport, PolicyTestRequest } from '../../features/policy-tests/policy-tests.schema.ts';
import { type CommandHost, covers, type Invocation } from '../command-host.ts';
import { policyDocument } from '../definitions/policy-document.ts';
import { readBody } from '../files/read-body.ts';
import { policyReportText } from '../output/policy-report.ts';
import type { Session } from '../session.ts';

// Beyond the codes of errors, as for a replay that drifted: what was asked for has been found.
const matchExitCode = 10;
// Nothing was found, and not everything could be looked at.
const gapExitCode = 11;

const kinds = ['guard', 'rule', 'quota', 'price'] as const;

const timeOf = (flag: string, option: unknown, now: number): string | undefined => {
  if (option === undefined) return undefined;
  const text = String(option).trim();
  const duration = parseDuration(text);
  const at =
    duration === undefined && /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : now - (duration ?? Number.NaN);
  if (!Number.isFinite(at) || Math.abs(at) > 8.64e15)
    throw new AcpError('validation-failed', `${flag} takes a duration such as 7d or 12h, or a time, not "${text}".`);
  return new Date(at).toISOString();
};

const takeOf = (option: unknown): number | undefined => {
  if (option === undefined) return undefined;
  const take = Number(option);
  if (!Number.isInteger(take) || take < 1 || take > 1000)
    throw new AcpError('validation-failed', `--take is a whole number from 1 to 1000, not "${String(option)}".`);
  return take;
};

const requestOf = async ({ terminal }: Session, { options }: Invocation): Promise<PolicyTestRequest> => {
  const [kind, ...others] = kinds.filter((name) => options[name] !== undefined);
  if (kind === undefined || others.length > 0)
    throw new AcpError('validation-failed', 'Give exactly one of --guard, --rule, --quota and --price.');
  const now = Date.now();
  const since = timeOf('--since', options['since'], now);
  const until = timeOf('--until', options['until'], now);
  const take = takeOf(options['take']);
  const document = policyDocument(kind, await readBody(String(options[kind]), terminal));
  return {
    // The service says what is wrong with the document.
    [kind]: document as never,
    ...(since === undefined ? {} : { since }),
    ...(until === undefined ? {} : { until }),
    ...(take === undefined ? {} : { take }),
  };
};

const exitCodeOf = ({ matches, notEvaluated }: PolicyTestReport, { options }: Invocation): number => {
  if (matches > 0 && options['failOnMatch'] === true) return matchExitCode;
  return notEvaluated.length > 0 && options['failOnGap'] === true ? gapExitCode : 0;
};

const test = async (session: Session, invocation: Invocation): Promise<number> => {
  const { terminal, print } = session;
  const body = await requestOf(session, invocation);
  const { body: report } = await session.connected(({ client }) =>
    client.policyTests.run({ body, signal: terminal.closed }),
  );
  await print(report, () => policyReportText(report, terminal));
  return exitCodeOf(report, invocation);
};

/** `acp policy test`: what a policy would have done to recorded runs. */
export const registerPolicy = (policy: Command, host: CommandHost): void => {
  const command = policy
    .command('test')
    .description('show what a new guard, approval rule, quota or price table would have changed in recorded runs')
    .option('--guard <file>', 'a pattern guard: the section Service:ContentGuard:Pattern, or a complete configuration')
    .option('--rule <file>', 'standing rules, tools that need approval, or both')
    .option('--quota <file>', 'a quota, or a list of them')
    .option('--price <file>', 'a price table: the section Service:Pricing, or a complete configuration')
    .option('--since <time>', 'start: a duration before now, such as 7d, or a time; default 7d')
    .option('--until <time>', 'end, exclusive; default: now')
    .option('--take <n>', 'entries in each list, 1 to 1000; default 50')
    .option('--fail-on-match', `exit code ${matchExitCode} if something would have changed`)
    .option('--fail-on-gap', `exit code ${gapExitCode} if something could not be evaluated`);
  covers(command, 'policyTests.run').action(host.act(test));
};
