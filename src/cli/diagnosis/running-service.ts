import { type Client, createClient } from '../../client/client.ts';
import { httpTransport } from '../../client/http-transport.ts';
import { AcpError } from '../../contract/errors.ts';
import { version } from '../../core/version.ts';
import type { Owner } from '../connect.ts';
import type { Finding } from './finding.ts';
import { providerFindings } from './provider-health.ts';

const limitMs = 10_000;

/** What a credential, or a service of another version, does not let this command see. */
const isHidden = (error: unknown): boolean => error instanceof AcpError && [401, 403, 404, 501].includes(error.status);

const onOff = (value: boolean): string => (value ? 'on' : 'off');

const skipped = (check: string, why: string): Finding => ({ status: 'skip', check, message: `not tried: ${why}` });

const list = (check: string, names: readonly string[], none: string): Finding => ({
  status: 'ok',
  check,
  message: names.length === 0 ? none : names.join(', '),
});

const diagnosticsFindings = async (client: Client): Promise<Finding[]> => {
  const { body } = await client.diagnostics.get({ signal: AbortSignal.timeout(limitMs) });
  const { configuration, pendingMigrations, draining, canConnect, worker, modules } = body;
  const unresolved = configuration.filter(({ resolved }) => !resolved);
  const findings: Finding[] = [
    canConnect
      ? { status: 'ok', check: 'store', message: `${body.persistenceProvider}: the service reaches it` }
      : { status: 'fail', check: 'store', message: `${body.persistenceProvider}: the service does not reach it` },
    pendingMigrations.length === 0
      ? { status: 'ok', check: 'migrations', message: 'none pending' }
      : { status: 'warn', check: 'migrations', message: `pending: ${pendingMigrations.join(', ')}` },
    { status: 'ok', check: 'worker', message: `${onOff(worker.enabled)}, ${worker.activeJobs} jobs in progress` },
    list(
      'modules',
      modules.map(({ path }) => path),
      'none',
    ),
  ];
  if (draining) findings.push({ status: 'warn', check: 'service', message: 'it is stopping' });
  for (const { key, hint } of unresolved)
    findings.push({
      status: 'warn',
      check: 'config',
      message: `${key} has no value there${hint === null ? '' : `: ${hint}`}`,
    });
  return findings;
};

type Step = readonly [check: string, look: (client: Client) => Promise<readonly Finding[]>, hidden: string];

const needsRole = 'the credential of this command may not read it (ACP_TOKEN or --token-file)';

const namesOf = (check: 'tools' | 'agents'): Step => [
  check,
  async (client) => {
    const { body } = await client[check].list({ signal: AbortSignal.timeout(limitMs) });
    const names = body.map(({ name }) => name);
    return [list(check, names, 'none')];
  },
  needsRole,
];

const steps: readonly Step[] = [
  [
    'diagnostics',
    diagnosticsFindings,
    'Host:EnableDiagnosticsEndpoint is off there, or the credential may not read it',
  ],
  [
    'providers',
    async (client) => {
      const findings = await providerFindings(client, null);
      return findings.length > 0
        ? findings
        : [{ status: 'warn', check: 'providers', message: 'none; no agent of this service can run' }];
    },
    needsRole,
  ],
  namesOf('tools'),
  namesOf('agents'),
];

/** What a running service says of itself. Each question has a time limit, and all are asked, also after one has failed. */
export const runningServiceFindings = async function* (
  { url, token }: Owner,
  failureText: (error: unknown) => string,
): AsyncGenerator<Finding> {
  const textOf = (error: unknown): string =>
    error instanceof Error && error.name === 'TimeoutError' ? 'it does not answer in time' : failureText(error);
  const transport = httpTransport({ url, token, userAgent: `acp/${version}` });
  const client = createClient(transport);
  try {
    const { body: meta } = await client.meta.get({ signal: AbortSignal.timeout(limitMs) });
    const {
      storage,
      authentication: { methods, allowRemoteAccess },
    } = meta;
    yield { status: 'ok', check: 'service', message: `${url} answers: acp ${meta.version}, store ${storage.provider}` };
    const machines = allowRemoteAccess ? 'of other machines, too' : 'of its own machine only';
    yield { status: 'ok', check: 'callers', message: `${machines}, by ${methods.join(', ')}` };
  } catch (error) {
    yield { status: 'fail', check: 'service', message: `${url}: ${textOf(error)}` };
    await transport.close();
    return;
  }
  try {
    for (const [check, look, hidden] of steps)
      try {
        yield* await look(client);
      } catch (error) {
        yield isHidden(error) ? skipped(check, hidden) : { status: 'fail', check, message: textOf(error) };
      }
  } finally {
    await transport.close();
  }
};
