/**
 * `npm run test:contract`: the rules of the service, asked over HTTP. Starts a server of its own, unless one is named.
 *
 *   npm run test:contract                                          the sources
 *   npm run test:contract -- --program dist/acp                    a built executable
 *   npm run test:contract -- --url http://127.0.0.1:7070 --token … a server that runs test/conformance/target/service.yaml
 *   npm run test:contract -- --processes 4                         so many processes on one PostgreSQL database, behind a proxy
 *   npm run test:contract -- --second-tenant                       with a second tenant that tries ids that it sees
 *   npm run test:contract -- --second-owner                        with owners of sessions, and a second one that does the same
 *   npm run test:contract -- --shared-server                       one for all rules: those with settings of their own are left out
 *   npm run test:contract -- test/conformance/runs.conformance.ts  one area
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { ensureInstalled, pinnedNode, root } from '../../bin/setup.mjs';
import { startPostgres } from '../postgres.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    url: { type: 'string' },
    token: { type: 'string' },
    program: { type: 'string' },
    processes: { type: 'string' },
    'second-tenant': { type: 'boolean' },
    'second-owner': { type: 'boolean' },
    'shared-server': { type: 'boolean' },
  },
});

await ensureInstalled();
const env = { NODE_COMPILE_CACHE: join(root, 'node_modules', '.cache', 'acp-tests'), ...process.env };
if (values.url !== undefined) env.ACP_CONFORMANCE_URL = values.url;
if (values.token !== undefined) env.ACP_CONFORMANCE_TOKEN = values.token;
if (values.program !== undefined) env.ACP_CONFORMANCE_PROGRAM = values.program;

if (values.processes !== undefined) env.ACP_CONFORMANCE_PROCESSES = values.processes;
if (values['shared-server']) env.ACP_CONFORMANCE_SHARED = '1';

const processes = Number(values.processes ?? 1);
const folder = mkdtempSync(join(tmpdir(), 'acp-conformance-'));
const postgres = values.processes === undefined ? null : await startPostgres(env);
Object.assign(env, postgres?.variables);
const watchers = ['second-tenant', 'second-owner'].filter((name) => values[name]);
const fileOf = (name) => join(folder, name);
if (values.processes !== undefined) env.ACP_CONFORMANCE_TRAFFIC = fileOf('traffic');
for (const name of watchers) env[`ACP_CONFORMANCE_${name.toUpperCase().replace('-', '_')}`] = fileOf(name);

/** What each test file has left to say under a name. */
const readReports = (name) => {
  const file = fileOf(name);
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n').map(JSON.parse) : [];
};

/** What a watcher of all servers has tried; 1 when something was left untried. */
const watcherReport = (name) => {
  const reports = readReports(name);
  const sum = (member) => reports.reduce((total, report) => total + report[member], 0);
  const union = (member) => [...new Set(reports.flatMap((report) => report[member]))].sort();
  const operations = union('operations');
  const unjudged = union('unjudged').filter((place) => !operations.includes(place));
  const what = name === 'second-tenant' ? 'Second tenant' : 'Second owner';
  console.log(
    `\n${what}: ${sum('ids')} ids, ${sum('attempts')} attempts in ${operations.length} places of operations.`,
  );
  if (unjudged.length > 0) console.log(`Not tried, for want of a body or a kind of id: ${unjudged.join(', ')}`);
  return sum('attempts') === 0 || unjudged.length > 0 ? 1 : 0;
};

/** That requests went round; 1 when a process had nothing to do, or nobody met a second one. */
const trafficReport = (isWhole) => {
  const fleets = readReports('traffic');
  const sum = (member) => fleets.reduce((total, fleet) => total + fleet[member], 0);
  const byProcess = Array.from({ length: processes }, (_, index) =>
    fleets.reduce((total, { answers }) => total + (answers[index] ?? 0), 0),
  );
  const idle = fleets.filter(({ answers }) => Math.min(...answers) === 0 && Math.max(...answers) > 3);
  const [conversations, spread] = [sum('conversations'), sum('spread')];
  console.log(
    `\n${fleets.length} fleets of ${processes} processes, which gave ${byProcess.join(', ')} answers; ` +
      `${spread} of ${conversations} runs and sessions that were asked for again met more than one process.`,
  );
  if (idle.length > 0) console.log(`${idle.length} of the fleets had a process that was asked for nothing.`);
  return idle.length > 0 || spread * 2 < conversations || (isWhole && spread === 0) ? 1 : 0;
};

const node = async (args) => {
  const child = spawn(pinnedNode(), args, { cwd: root, env, stdio: 'inherit' });
  const [code] = await once(child, 'close');
  return code ?? 1;
};

/** The server of all rules without settings of their own: one for each file would take minutes. */
const startFleet = async () => {
  const child = spawn(pinnedNode(), [join(root, 'test/conformance/fleet-main.ts')], {
    cwd: root,
    env,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const closed = once(child, 'close');
  let said = '';
  for await (const part of child.stdout) {
    said += part;
    if (said.endsWith('\n')) break;
  }
  if (said === '') throw new Error('The processes of all test files did not come up.');
  env.ACP_CONFORMANCE_FLEET = said.trim();
  return async () => {
    child.stdin.end();
    await closed;
  };
};

const files = positionals.length > 0 ? positionals : ['test/conformance/*.conformance.ts'];
const ran = join(folder, 'ran');
const options = [
  '--test',
  '--test-reporter=spec',
  '--test-reporter-destination=stdout',
  `--test-reporter=${join(root, 'test/conformance/ran-tests.reporter.ts')}`,
  `--test-reporter-destination=${ran}`,
  `--test-concurrency=${processes > 2 ? 1 : 2}`,
  // A rule may have to wait for all processes of its server to come up, and for those who watch.
  `--test-timeout=${120_000 * processes * (1 + watchers.length)}`,
];
let stopFleet = async () => undefined;
try {
  if (values.url === undefined) stopFleet = await startFleet();
  const failed = await node([...options, ...files]);
  // What the suite proves is said by a run of all of it: with owners rules are left out, and so they are on a shared server.
  const isWhole = positionals.length === 0 && !values['second-owner'] && !values['shared-server'];
  const incomplete = isWhole ? await node([join(root, 'test/conformance/report.ts'), ran]) : 0;
  const untried = watchers.reduce((sum, name) => sum + watcherReport(name), 0);
  await stopFleet();
  const uneven = values.processes === undefined ? 0 : trafficReport(positionals.length === 0);
  process.exitCode = failed || incomplete || uneven || (untried > 0 ? 1 : 0);
} finally {
  await stopFleet();
  await postgres?.stop();
  rmSync(folder, { recursive: true, force: true });
}
