/** What `npm run test:mcp-conformance` does, with one service for all of it. */
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { startProcess } from '../conformance/server.ts';
import { answerScenarios } from './asked-scenarios.ts';
import { startRelay } from './relay.ts';
import { clientSecret, scriptFor } from './scenarios.ts';
import { saveAgent, serviceVariable } from './service-calls.ts';
import { type Check, checksIn, command, requiredScenarios, revisions, runSuite, type SuiteRun } from './suite.ts';

const { values } = parseArgs({
  options: { program: { type: 'string' }, only: { type: 'string' }, verbose: { type: 'boolean', default: false } },
});
if (values.program !== undefined) process.env['ACP_CONFORMANCE_PROGRAM'] = values.program;

/** Agents of the service, with the names of the tools that the suite asks for. */
const agents: readonly (readonly [name: string, model: string, tools?: readonly string[]])[] = [
  ['test_simple_text', 'greets'],
  ['test_tool_with_progress', 'steps', ['step']],
  ['test_error_handling', 'fails'],
  ['test_logging_tool', 'greets'],
  ['test_streaming_elicitation', 'greets'],
  ['test_trigger_tool_change', 'change', ['change_tools']],
];

const folder = mkdtempSync(join(tmpdir(), 'acp-mcp-conformance-'));
cpSync(join(import.meta.dirname, 'target'), folder, { recursive: true });
writeFileSync(
  join(folder, 'script.yaml'),
  scriptFor(revisions.flatMap((revision) => requiredScenarios(revision, 'client'))),
);

let failures = 0;
const told = (what: string, { code, output }: SuiteRun): void => {
  if (code !== 0) failures += 1;
  if (code !== 0 || values.verbose) console.log(output);
  console.log(`${code === 0 ? 'passed' : 'FAILED'}  ${what}`);
};

const isFailure = ({ status }: Check): boolean => status === 'FAILURE' || status === 'WARNING';

/** How many checks of how many scenarios, of those that a revision requires. */
const counted = (results: string, required: readonly string[]): string => {
  const scenarios = [...checksIn(results)].filter(([scenario]) => required.includes(scenario));
  const checks = scenarios.flatMap(([, all]) => all);
  const passed = checks.filter(({ status }) => status === 'SUCCESS').length;
  const whole = scenarios.filter(([, all]) => all.some(({ status }) => status === 'SUCCESS') && !all.some(isFailure));
  return `${whole.length} of ${required.length} scenarios, ${passed} checks passed, ${checks.filter(isFailure).length} did not`;
};

const relay = await startRelay();
process.env[serviceVariable] = relay.url;
const service = await startProcess(folder, '', {
  [clientSecret.key]: clientSecret.value,
  'Service:Mcp:OAuthCallbackBaseUri': relay.url,
});
relay.use(service.url);

const required = async (side: 'server' | 'client', where: readonly string[], limitMs: number): Promise<void> => {
  for (const revision of revisions) {
    const results = mkdtempSync(join(folder, `${side}-`));
    const baseline = join(import.meta.dirname, `expected-failures.${revision}.yaml`);
    const args = [side, ...where, '--requirements', revision, '--expected-failures', baseline];
    const run = await runSuite([...args, '--timeout', '40000', '--output-dir', results], { limitMs });
    const scenarios = requiredScenarios(revision, side);
    told(`${side}, ${revision}: ${counted(results, scenarios)}`, run);
    // The suite takes a scenario for passed of which it has seen nothing.
    const checks = checksIn(results);
    const silent = scenarios.filter(
      (scenario) => !checks.get(scenario)?.some((check) => isFailure(check) || check.status === 'SUCCESS'),
    );
    if (silent.length > 0) told(`nothing was seen of ${silent.join(', ')}`, { code: 1, output: '' });
  }
};

try {
  const parts = values.only === undefined ? ['server', 'client', 'through'] : [values.only];
  for (const agent of agents) await saveAgent(agent[0], agent[1], agent[2] ?? []);
  if (parts.includes('server')) await required('server', ['--url', `${relay.url}/mcp`], 60_000);
  if (parts.includes('client')) {
    const asked = mkdtempSync(join(folder, 'asked-'));
    process.env['ACP_MCP_CONFORMANCE_ASKED'] = asked;
    const stop = answerScenarios(asked);
    await required('client', ['--command', `sh ${join(import.meta.dirname, 'client.sh')}`], 60_000);
    stop();
  }
  if (parts.includes('through'))
    for (const served of revisions)
      for (const spoken of revisions) {
        const args = ['client', '--scenario', 'tools_call', '--spec-version', served];
        const run = await runSuite([...args, '--command', command('through-main.ts', spoken)], { limitMs: 45_000 });
        told(`through: a client of ${spoken} to a server of ${served}`, run);
      }
} finally {
  await service.stop();
  await relay.close();
  rmSync(folder, { recursive: true, force: true });
}
process.exitCode = failures === 0 ? 0 : 1;
