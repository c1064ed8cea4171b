import { ProblemError } from '../../client/problem.ts';
import {
  AcpError,
  type ErrorCode,
  errorTable,
  type FieldError,
  type Problem,
  toProblem,
} from '../../contract/errors.ts';
import { formatDuration } from '../../text/format.ts';
import { providerReasonText } from '../../text/provider-reason.ts';
import type { Style } from '../../text/style.ts';
import { safeText } from '../../text/text-width.ts';
import { sampleProvider } from '../sample-provider.ts';

/** A failure as the command line tells it. */
export interface ErrorReport {
  readonly exitCode: number;
  readonly problem: Problem;
  /** For people, without a final line end. */
  text(style: Style): string;
}

const hints: Partial<Readonly<Record<ErrorCode, string>>> = {
  'cannot-connect': 'Start a service with `acp serve`, or name a running one with --url or ACP_URL.',
  'store-missing':
    'Name a running service with --url or ACP_URL; or start one here with `acp serve`; or run the command in the folder of its service.yaml, or name that file with --config.',
  unauthenticated:
    'Give a token or an API key by the variable ACP_TOKEN or with --token-file; `acp init` writes one to acp.key.',
  'remote-access-denied': 'The service only answers this machine until Host:AllowRemoteAccess is set.',
  'agent-not-found': '`acp agents list` shows the agents there are.',
  'run-not-found': '`acp runs list --include-children` shows the runs there are.',
  'version-conflict': 'Somebody else changed it meanwhile; look at the current version first.',
  'agent-code-defined': 'It comes from Host:Agents or a module; change it there and restart the service.',
  'approval-pending': '`acp approvals list` shows what the session waits for.',
  'approvals-missing': '`--approve all` or `--reject all` answers every request that is not named.',
  'replay-result-missing':
    'The model asked for something that the recording has not; --tools LiveTools calls the tools.',
  'replay-needs-approval': '--tools ReplayTools answers its calls from the recording.',
  'run-input-not-recorded': 'Inputs are recorded while Service:RunRecording:RecordRunInput is true.',
  'emergency-stopped': '`acp emergency status` tells who stopped what and why; `acp resume` lets it run again.',
  migrating: 'Run `acp db migrate`, or set AutoApplyMigrations of the store (below Service:Persistence) to true.',
};

const fieldLine = ({ path, message }: FieldError, style: Style): string =>
  path === '' ? `  ${safeText(message)}` : `  ${style.bold(safeText(path))}: ${safeText(message)}`;

/** An agent of the quickstart outlives it in its store. */
const lacksSampleProvider = ({ details: { errors = [] } }: AcpError): boolean =>
  errors.some(
    ({ path, message }) => /(?:^|\.)provider$/.test(path) && message.includes(`"${sampleProvider}" is not registered`),
  );

const sampleProviderHint =
  `\`acp quickstart\` registers the provider "${sampleProvider}" and the tools of its sample agent only while it runs: start it ` +
  'again and use another terminal, or let `acp init` make a service that keeps them.';

const hintFor = (error: AcpError): string | undefined => {
  const { requiredRole, requiredScope, retryAfterMs, hint } = error.details;
  if (hint !== undefined) return hint;
  if (requiredRole !== undefined) return `Use a credential with the role ${requiredRole} or a higher one.`;
  if (requiredScope !== undefined) return `Use an API key with the scope ${requiredScope}.`;
  // Only a person ends a stop: trying again does not.
  if (retryAfterMs !== undefined && error.code !== 'emergency-stopped')
    return `Try again in ${formatDuration(retryAfterMs)}.`;
  return lacksSampleProvider(error) ? sampleProviderHint : hints[error.code];
};

const describe = (error: AcpError, problem: Problem, style: Style): string => {
  const lines = [`${style.red('error:')} ${safeText(problem.detail)}`];
  const errors = error.details.errors ?? [];
  // A single finding without more to say is already in the detail.
  if (errors.length > 1 || !errors.every(({ message }) => problem.detail.includes(message)))
    lines.push(...errors.map((field) => fieldLine(field, style)));
  if (problem.provider !== undefined) lines.push(`  ${providerReasonText(problem.provider)}`);
  const hint = hintFor(error);
  if (hint !== undefined) lines.push(style.dim(`hint: ${hint}`));
  if (error.code === 'internal' && problem.requestId !== '') lines.push(style.dim(`request: ${problem.requestId}`));
  return lines.join('\n');
};

interface StartProblems {
  report?(): string;
  readonly hint?: string;
  readonly problems?: readonly { readonly key?: string | null; readonly field?: string; readonly message: string }[];
}

// Classes of what stops a start: configuration, agents, tools, skills and scripts of the host. They are known by name, since
// light commands must not load what throws them. Each lists its `problems` and has a text of several lines.
const startErrors = new Set([
  'ConfigError',
  'CodeAgentsError',
  'ToolProblemsError',
  'ScriptError',
  'SkillRootError',
  'ModuleSkillsError',
]);

const isStartError = (error: unknown): error is Error & StartProblems =>
  error instanceof Error && startErrors.has(error.name);

const reportOf = (error: AcpError, text: (style: Style, problem: Problem) => string): ErrorReport => {
  const problem = error instanceof ProblemError ? error.problem : toProblem(error, '', '');
  return { exitCode: errorTable[error.code].exit, problem, text: (style) => text(style, problem) };
};

const startReport = (error: Error & StartProblems): ErrorReport => {
  const text = error.report?.() ?? error.message;
  const errors = error.problems?.map(({ key, field, message }) => ({ path: key ?? field ?? '', message })) ?? [];
  const [summary = error.message] = error.message.split('\n', 1);
  const refusal = new AcpError('validation-failed', summary.replace(/:$/, ''), { details: { errors } });
  const hint = error.hint === undefined ? '' : `\nhint: ${error.hint}`;
  return reportOf(refusal, (style) => `${style.red('error:')} ${safeText(text)}${style.dim(hint)}`);
};

/** An address that cannot be taken; its class belongs to the server, which light commands do not load. */
const isListenError = (error: unknown): error is Error => error instanceof Error && error.name === 'ListenError';

const listenReport = (error: Error): ErrorReport => {
  const hint = 'hint: Choose another address with --url or the setting Host:Url.';
  return reportOf(
    new AcpError('cannot-connect', error.message),
    (style) => `${style.red('error:')} ${safeText(error.message)}\n${style.dim(hint)}`,
  );
};

/** What to print and with which code to end. Whatever no table entry explains is a bug and ends with 1. */
export const reportError = (error: unknown): ErrorReport => {
  if (isStartError(error)) return startReport(error);
  if (isListenError(error)) return listenReport(error);
  const fault =
    error instanceof AcpError
      ? error
      : new AcpError('internal', error instanceof Error ? error.message : String(error), { cause: error });
  return reportOf(fault, (style, problem) => describe(fault, problem, style));
};
